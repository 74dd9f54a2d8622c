"""Artifacts in an object store: the bucket, its faults as our errors, and the mirror of it on this machine."""
