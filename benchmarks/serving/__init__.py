"""Benchmarks of the model server."""
