"""Writes the files that run a pushed model under the real TensorFlow Serving: Docker, Kubernetes, KServe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from serving.deployment import docker, kubernetes
from serving.deployment.target import READ_BY_TENSORFLOW_SERVING, Deployment, Store

__all__ = ["ALL_FILES", "KUBERNETES", "READ_BY_TENSORFLOW_SERVING", "Deployment", "Store", "files"]

DOCKERFILE = "Dockerfile"
COMPOSE = "compose.yaml"
KUBERNETES = "kubernetes.yaml"
INFERENCE_SERVICE = "inferenceservice.yaml"
ALL_FILES = (
    docker.MODELS,
    docker.MONITORING,
    docker.BATCHING,
    DOCKERFILE,
    COMPOSE,
    KUBERNETES,
    INFERENCE_SERVICE,
)
"""The names of all files that a deployment may write."""

# Lines are not wrapped: people read and copy a command as a whole.
LINE_LENGTH = 10_000


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
# No aliases: a list used twice is written twice, since people read these files.
_Dumper.ignore_aliases = lambda _self, _data: True  # type: ignore[method-assign,assignment]


def files(deployment: Deployment, header: str) -> dict[str, str]:
    """Writes every file of a deployment.

    Args:
        deployment: What to deploy.
        header: The one-line comment at the top of each file, which says where it comes from.

    Returns:
        File name -> text, for the files in ALL_FILES that this deployment has: without Kubernetes' objects if
        TensorFlow Serving cannot read the store, and without batching.config if nothing is batched.
    """
    texts = docker.config_files(deployment, deployment.folder)
    texts[DOCKERFILE] = docker.dockerfile(deployment)
    texts[COMPOSE] = _yaml([docker.compose(deployment)])
    if deployment.store.scheme in READ_BY_TENSORFLOW_SERVING:
        texts[KUBERNETES] = _yaml(kubernetes.manifests(deployment))
    texts[INFERENCE_SERVICE] = _yaml([kubernetes.inference_service(deployment)])
    return {name: f"{header}\n{text}" for name, text in texts.items()}


def _yaml(documents: Iterable[dict[str, Any]]) -> str:
    dump = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=LINE_LENGTH, allow_unicode=True)
    return str(dump)
