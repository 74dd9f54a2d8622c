"""Artifacts in an object store: the bucket, its errors as ours, and the local mirror of it."""
