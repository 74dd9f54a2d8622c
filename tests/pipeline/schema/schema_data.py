"""Small data sets for the tests of schema changes: their statistics by TFDV, their rows in files."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder

Values = list[Any]
Split = Mapping[str, Values]
"""Rows by column; a row is a value, a list of values, or None."""


def batch(split: Split) -> pa.RecordBatch:
    """A batch of list columns, with missing values as null, as StatisticsGen gets it."""
    return pa.RecordBatch.from_arrays([_column(values) for values in split.values()], names=list(split))


def _column(values: Values) -> pa.Array:
    rows = [value if isinstance(value, list) or value is None else [value] for value in values]
    first = next((row[0] for row in rows if row), None)
    kinds = {int: pa.int64(), float: pa.float32(), bytes: pa.large_binary(), str: pa.large_binary()}
    if first is None:
        return pa.nulls(len(rows))
    encoded = [row and [v.encode() if isinstance(v, str) else v for v in row] for row in rows]
    return pa.array(encoded, pa.large_list(kinds[type(first)]))


def statistics(split: Split) -> statistics_pb2.DatasetFeatureStatisticsList:
    """TFDV's statistics for a split."""
    return stats_impl.generate_statistics_in_memory(batch(split), tfdv.StatsOptions())


def write_examples(split: Split, path: Path) -> Path:
    """Writes the rows as ExampleGen does, in gzip TFRecords, with checksums that nobody verifies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = batch(split)
    # The encoder only takes lists; a column without values is left out.
    filled = [name for name in split if not pa.types.is_null(whole.column(name).type)]
    rows = pa.RecordBatch.from_arrays([whole.column(name) for name in filled], names=filled)
    with gzip.open(path, "wb") as file:
        for record in RecordBatchToExamplesEncoder().encode(rows):
            file.write(struct.pack("<QI", len(record), 0) + record + b"\0\0\0\0")
    return path
