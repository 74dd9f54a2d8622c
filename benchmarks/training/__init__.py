"""The benchmarks of the Trainer: `python -m benchmarks.training`."""
