"""The rows that are analyzed, as both engines are told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.tfxio.tensor_adapter import TensorAdapterConfig
from tfx_bsl.tfxio.tf_example_record import TFExampleRecord

from components.transform import stacking


@dataclass(frozen=True)
class TrainingRows:
    """The `train` split.

    Attributes:
        files: Its gzip TFRecord files of tf.Examples.
        pattern: The same for Beam.
        schema: Their schema.
        stacked: The columns that are analyzed as one input.
    """

    files: Sequence[str]
    pattern: str
    schema: schema_pb2.Schema
    stacked: Sequence[str]

    @property
    def source(self) -> TFExampleRecord:
        """The rows as Beam reads them, nothing stacked."""
        return TFExampleRecord(self.pattern, telemetry_descriptors=["Transform"], schema=self.schema)

    @property
    def adapter(self) -> TensorAdapterConfig:
        """What TFT has to know of them, after stacking."""
        plain = self.source.TensorAdapterConfig()
        return stacking.adapter_config(plain, self.stacked) if self.stacked else plain
