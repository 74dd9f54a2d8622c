"""Which versions of a model should be served: what lies in its base path, and the policy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from serving.errors import Code, ServingError
from serving.settings import All, Latest, ModelConfig, VersionPolicy

LARGEST_VERSION = 2**63 - 1
log = logging.getLogger(__name__)


def aspired(config: ModelConfig) -> dict[int, Path]:
    """Looks for the versions to serve.

    Args:
        config: The model.

    Returns:
        The folder of each version to serve; empty where the base path is.

    Raises:
        ServingError: NOT_FOUND, the base path cannot be listed. That says nothing of what should be served: a
            mount may be away for a moment.
    """
    try:
        versions = _versions(config.base_path)
    except OSError as error:
        raise ServingError(
            Code.NOT_FOUND,
            f"Could not find base path {config.base_path} for servable {config.name} with error {error.strerror}",
        ) from error
    return {version: versions[version] for version in _chosen(config.policy, versions)}


def _versions(base_path: Path) -> dict[int, Path]:
    versions: dict[int, Path] = {}
    for path in sorted(base_path.iterdir()):
        # "²" is a digit and int() refuses it; "00000123" is version 123.
        if not (path.name.isascii() and path.name.isdecimal() and path.is_dir()):
            continue
        version = int(path.name)
        if version > LARGEST_VERSION:
            continue
        if version in versions:
            log.warning("Version %d will be loaded from %s; %s will be ignored.", version, versions[version], path)
            continue
        versions[version] = path
    return versions


def _chosen(policy: VersionPolicy, versions: Mapping[int, Path]) -> list[int]:
    if isinstance(policy, All):
        return sorted(versions)
    if isinstance(policy, Latest):
        return sorted(versions)[-policy.num_versions :]
    return sorted(set(policy.versions) & versions.keys())
