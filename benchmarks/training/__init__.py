"""What the Trainer is measured by: `python -m benchmarks.training`."""
