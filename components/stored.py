"""Where an artifact is kept, for what writes it down; an executor may work on a copy in a folder of its machine."""

from __future__ import annotations

from tfx.types import Artifact

STORED_AT = "stored_at"
"""The custom property of an executor's input that names it, where that is another place than the artifact's URI."""


def place_of(artifact: Artifact) -> str:
    """Where the artifact is kept: a folder, or such as `s3://bucket/key`."""
    return artifact.get_string_custom_property(STORED_AT) or str(artifact.uri)
