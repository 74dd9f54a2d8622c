"""Writes what runs a pushed model under the real TensorFlow Serving: Docker, Kubernetes, KServe."""

from serving.deployment.rendering import ALL_FILES, KUBERNETES, files
from serving.deployment.settings import (
    READ_BY_TENSORFLOW_SERVING,
    Batching,
    Deployment,
    KServe,
    Replicas,
    Resources,
    Store,
    Versions,
)

__all__ = [
    "ALL_FILES",
    "KUBERNETES",
    "READ_BY_TENSORFLOW_SERVING",
    "Batching",
    "Deployment",
    "KServe",
    "Replicas",
    "Resources",
    "Store",
    "Versions",
    "files",
]
