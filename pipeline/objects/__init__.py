"""Artifacts in an object store (S3, MinIO, Cloud Storage): kept there, worked with in a folder of this machine."""
