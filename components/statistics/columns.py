"""The features of serialized tf.Examples as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from components.cores import on_all_cores
from contracts.file_names import COLUMNS_FILE

BATCH_ROWS = 2**14
BATCH_BYTES = 16 * 2**20
SAMPLE_ROWS = 100
"""The number of rows from which the mean row size is estimated."""

DTYPES = {"INT": tf.int64, "FLOAT": tf.float32, "BYTES": tf.string}
EMPTY = "EMPTY"


def read_serialized(files: Sequence[str], batch_size: int) -> Iterator[Any]:
    """Yields the records of gzip TFRecord files as numpy arrays of bytes, shape [<= batch_size]."""
    records = tf.data.TFRecordDataset(list(files), compression_type="GZIP")
    return records.batch(batch_size).as_numpy_iterator()  # type: ignore[no-any-return]


def read_columns(files: Sequence[str], kinds: Mapping[str, str] | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows of gzip TFRecord files of tf.Examples as batches of list columns, null where a value is missing.

    Args:
        files: In the order of the rows.
        kinds: See `kinds_of`.
    """
    rows = batch_rows(mean_bytes(files), BATCH_ROWS, BATCH_BYTES)
    return on_all_cores(partial(decode, kinds=kinds), read_serialized(files, rows))


def decode(serialized: Any, kinds: Mapping[str, str] | None = None) -> pa.RecordBatch:
    """Decodes tf.Examples into a record batch: one list column for each feature, null where a value is missing.

    Args:
        serialized: Bytes, [rows].
        kinds: See `kinds_of`.
    """
    if kinds is None:
        return missing_as_null(ExamplesToRecordBatchDecoder().DecodeBatch(list(serialized)))
    spec = {name: tf.io.RaggedFeature(DTYPES[kind]) for name, kind in kinds.items() if kind != EMPTY}
    parsed = tf.io.parse_example(serialized, spec) if spec else {}
    columns = {name: _lists(parsed[name]) if name in parsed else pa.nulls(len(serialized)) for name in sorted(kinds)}
    return missing_as_null(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def decode_files(files: Sequence[str]) -> pa.RecordBatch:
    """All rows of gzip TFRecord files of tf.Examples as one batch; see `decode`."""
    return decode([record for batch in read_serialized(files, BATCH_ROWS) for record in batch.tolist()])


def kinds_of(examples_uri: str) -> dict[str, str] | None:
    """The kind of every feature that the rows have: `INT`, `FLOAT`, `BYTES`, or `EMPTY` if no row has a value.

    Args:
        examples_uri: The folder of an Examples artifact.

    Returns:
        None if another ExampleGen wrote them: then only the rows tell.
    """
    file = Path(examples_uri, COLUMNS_FILE)
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def batch_rows(row_bytes: float, most_rows: int, most_bytes: int) -> int:
    """The number of rows in a batch.

    Args:
        row_bytes: The mean size of a row.
        most_rows: What makes the cost of a batch vanish.
        most_bytes: What the memory allows.
    """
    return max(1, min(most_rows, int(most_bytes / max(row_bytes, 1))))


def mean_bytes(files: Sequence[str]) -> float:
    """The mean size of a serialized row, estimated from the first rows."""
    sample: Any = next(read_serialized(files, SAMPLE_ROWS), [])
    return sum(map(len, sample)) / max(len(sample), 1)


def missing_as_null(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same batch with null in place of lists without values."""
    columns = [column if pa.types.is_null(column.type) else _empty_as_null(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _empty_as_null(column: pa.LargeListArray) -> pa.LargeListArray:
    lengths = pc.list_value_length(column).fill_null(0)
    if pc.min(lengths).as_py() != 0:
        return column
    starts = pc.if_else(pc.greater(lengths, 0), column.offsets[:-1], None)
    offsets = pa.concat_arrays([starts, column.offsets[-1:]])
    return type(column).from_arrays(offsets, column.values)


def _lists(values: tf.RaggedTensor) -> pa.LargeListArray:
    flat = values.flat_values.numpy()
    # As tfx_bsl has it: text is bytes with long offsets.
    array = pa.array(flat, pa.large_binary()) if flat.dtype == object else pa.array(flat)
    return pa.LargeListArray.from_arrays(pa.array(values.row_splits.numpy()), array)
