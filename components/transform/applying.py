"""Applies a saved transform graph to rows, which are parsed, transformed, encoded and compressed a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
import tensorflow_transform as tft
from tfx.dsl.io import fileio
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder
from tfx_bsl.tfxio.tensor_to_arrow import TensorsToRecordBatchConverter

from components.example_gen.encoding import Column, encode_examples
from components.example_gen.kinds import Kind
from components.example_gen.tfrecords import gzipped
from components.progress import RowProgress
from components.statistics import columns
from components.statistics.columns import mean_bytes, read_serialized
from components.transform.stacking import RawTransform

BATCH_ROWS = 2**14
"""The most rows in a batch: large enough that per-batch costs vanish, small enough that all cores get some."""

BATCH_BYTES = 16 * 2**20
"""About how many bytes a batch has. Wide rows, such as images, come in smaller batches: several are held at once."""

KINDS = {pa.int64(): Kind.INT, pa.float32(): Kind.FLOAT, pa.binary(): Kind.BYTES, pa.large_binary(): Kind.BYTES}

Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""`map`, or what does the same on several cores."""


class Applied:
    """A saved transform graph, applied to gzip TFRecord files of tf.Examples.

    Args:
        graph_path: The folder of a TFTransformOutput.
    """

    def __init__(self, graph_path: str) -> None:
        output = tft.TFTransformOutput(graph_path)
        spec, transform = output.raw_feature_spec(), RawTransform(graph_path)
        self._row_bytes = _parsed_bytes(output.transformed_feature_spec())
        # The traced function alone does not hold the graph's tables.
        self._held = transform

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def transformed(serialized: tf.Tensor) -> dict[str, Any]:
            return transform(tf.io.parse_example(serialized, spec))

        self._transformed = transformed.get_concrete_function()

    def transform(self, files: Iterable[tuple[str, str]], each: Each, progress: RowProgress) -> None:
        """Transforms files, row by row in their order.

        Args:
            files: Pairs of the file of raw rows and the file to write.
            each: What applies a function to batches.
            progress: Counts the rows.
        """
        for target, parts in groupby(each(self._compressed, self._batches(files)), key=itemgetter(0)):
            with fileio.open(target, "wb") as file:
                for _, rows, part in parts:
                    file.write(part)
                    progress.add(rows)

    def _batches(self, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
        for source, target in files:
            rows = batch_rows(mean_bytes([source]) + self._row_bytes)
            batches = read_serialized([source], rows)
            # A file without rows becomes a file, too.
            yield target, next(batches, None)
            for batch in batches:
                yield target, batch

    def _compressed(self, batch: tuple[str, Any]) -> tuple[str, int, bytes]:
        """The transformed rows of a batch, bytes [rows] or None, as a whole gzip TFRecord file of tf.Examples."""
        target, serialized = batch
        if serialized is None:
            return target, 0, gzipped(pa.array([], pa.large_binary()))
        return target, len(serialized), gzipped(encode(self._transformed(tf.constant(serialized, tf.string))))


def batch_rows(row_bytes: float) -> int:
    """The number of rows in a batch.

    Args:
        row_bytes: The mean size of a row.
    """
    return columns.batch_rows(row_bytes, BATCH_ROWS, BATCH_BYTES)


def _parsed_bytes(spec: Mapping[str, Any]) -> int:
    """The size in bytes of the dense features of a transformed row."""
    dense = [feature for feature in spec.values() if isinstance(feature, tf.io.FixedLenFeature)]
    return sum(tf.TensorShape(feature.shape).num_elements() * feature.dtype.size for feature in dense)


def encode(tensors: Mapping[str, Any]) -> pa.Array:
    """Serializes tensors of shape [batch, ...] as tf.Examples: a (batch,) large_binary array."""
    specs = {name: _batched_spec(tensor) for name, tensor in tensors.items()}
    batch: pa.RecordBatch = TensorsToRecordBatchConverter(specs).convert(dict(tensors))
    if any(_kind(field.type) is None for field in batch.schema):
        return pa.array(RecordBatchToExamplesEncoder().encode(batch), pa.large_binary())
    # Three times as fast as tfx-bsl's encoder.
    return encode_examples([_column(field, batch.column(field.name)) for field in batch.schema], batch.num_rows)


def _batched_spec(tensor: Any) -> tf.TypeSpec:
    spec = tf.type_spec_from_value(tensor)
    shape = [None, *spec.shape[1:]]
    return (
        tf.SparseTensorSpec(shape, spec.dtype)
        if isinstance(spec, tf.SparseTensorSpec)
        else tf.TensorSpec(shape, spec.dtype)
    )


def _kind(column: pa.DataType) -> Kind | None:
    """What a column of lists holds; None for lists of lists, and for what only tfx-bsl can encode."""
    return KINDS.get(column.value_type) if pa.types.is_list(column) or pa.types.is_large_list(column) else None


def _column(field: pa.Field, lists: pa.Array) -> Column:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    kind = _kind(field.type)
    return Column(field.name, Kind.EMPTY if kind is None else kind, lists.flatten(), offsets)
