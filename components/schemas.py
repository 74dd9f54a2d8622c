"""The Schema artifact."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import Artifact, artifact_utils
from tfx.utils import io_utils


def read(artifacts: Sequence[Artifact]) -> schema_pb2.Schema:
    """The schema in the one artifact of an input channel."""
    folder = artifact_utils.get_single_uri(list(artifacts))
    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(folder))
