"""What several nodes share about artifacts: how to read some, where they are stored, and a type that two nodes use."""

from __future__ import annotations

import os

from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import Artifact, artifact, artifact_utils
from tfx.utils import io_utils


def split_files(examples: Artifact, split: str) -> list[str]:
    """The TFRecord files of a split of an Examples artifact, sorted."""
    folder = artifact_utils.get_split_uri([examples], split)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def split_pattern(examples: Artifact, split: str) -> str:
    """The TFRecord files of a split of an Examples artifact, as one pattern.

    Beam reads a pattern in one stage with what follows and distributes its files to workers; from a list of files it
    makes as many sources, flattens them, and holds every row in between.
    """
    return os.path.join(artifact_utils.get_split_uri([examples], split), "*")


def read_schema(schema: Artifact) -> schema_pb2.Schema:
    """The schema in a Schema artifact."""
    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(schema.uri))


STORED_AT = "stored_at"
"""The custom property with the stored location of an executor's input, where that differs from the artifact's URI."""


def artifact_location(artifact: Artifact) -> str:
    """Where the artifact is stored: a folder, or a location such as `s3://bucket/key`."""
    return artifact.get_string_custom_property(STORED_AT) or str(artifact.uri)


class TFLiteModel(artifact.Artifact):
    """A folder with `report.json` and, where the SavedModel was converted, `model.tflite`.

    Properties: `blessed`, 1 if the model may be pushed, else 0; `quantization`; and, if there is a model, its
    `size_bytes` with metadata and labels, `accuracy` and `saved_model_accuracy` on the `eval` split (fractions), and
    `latency_ms`, the median over invocations with a single row on the machine that the node ran on.
    """

    TYPE_NAME = "TFLiteModel"
    PROPERTIES = {  # noqa: RUF012  # TFX's own form
        "size_bytes": artifact.Property(type=artifact.PropertyType.INT),
        "accuracy": artifact.Property(type=artifact.PropertyType.FLOAT),
        "saved_model_accuracy": artifact.Property(type=artifact.PropertyType.FLOAT),
        "latency_ms": artifact.Property(type=artifact.PropertyType.FLOAT),
        "quantization": artifact.Property(type=artifact.PropertyType.STRING),
        "blessed": artifact.Property(type=artifact.PropertyType.INT),
    }


def number_of_rows(examples: Artifact) -> int | None:
    """How many rows an Examples artifact of our ExampleGen has, in all splits; None if another wrote it."""
    return examples.get_int_custom_property("num_rows") or None
