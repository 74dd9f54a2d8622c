"""The benchmarks of the model server."""
