"""Parquet, by row groups. The file says what its columns hold; unlike for CSV, nothing is inferred.

Integers and booleans become integers; floats and decimals become floats; text and bytes become bytes; dates and times
become the ISO text that the same table saved as CSV would hold; lists of these become several values. Null becomes a
missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.example_gen.contract import SHARD_BYTES, Batch, Piece
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from contracts.errors import DataError

_BATCH_ROWS = 16_384
_ARROW_TYPE = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float32(), Kind.BYTES: pa.binary()}


class ParquetSource:
    """Parquet; see `contract.Source`. It has no malformed rows: a damaged file cannot be read at all."""

    def peek_columns(self, file: str) -> list[str]:
        return list(_open(file).schema_arrow.names)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        files = [str(file) for file in inputs.files]
        first = _open(files[0]).schema_arrow
        pieces: list[Piece] = []
        for file in files:
            opened = _open(file)
            if opened.schema_arrow.names != first.names:
                raise DataError(
                    f"{file} has the columns {opened.schema_arrow.names}, {files[0]} has {first.names}.",
                    "Give all files the same columns.",
                )
            pieces += _row_groups(file, opened.metadata)
        if not pieces:
            raise DataError(f"{files[0]} has no rows, expected at least one.", "Check data.path.")
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        schema = _open(piece.file).schema_arrow
        return {field.name: _kind(piece.file, field.name, field.type) for field in schema}

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        groups = range(piece.start, piece.end or piece.start)
        for batch in _open(piece.file).iter_batches(_BATCH_ROWS, list(groups), use_threads=False):
            columns = [
                _column(piece.file, name, kinds[name], batch.column(i)) for i, name in enumerate(batch.schema.names)
            ]
            yield Batch(columns, batch.num_rows)


def _open(file: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{file} cannot be read as Parquet: {error}", "Check the file and data.format.") from error


def _row_groups(file: str, metadata: pq.FileMetaData) -> list[Piece]:
    pieces: list[Piece] = []
    start, size = 0, 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= SHARD_BYTES or group == metadata.num_row_groups - 1:
            pieces.append(Piece(file, start, group + 1, size))
            start, size = group + 1, 0
    return pieces if metadata.num_rows else []


def _kind(file: str, name: str, type_: pa.DataType) -> Kind:
    types = pa.types
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return _kind(file, name, type_.value_type)
    if types.is_dictionary(type_):
        return _kind(file, name, type_.value_type)
    if types.is_null(type_):
        return Kind.EMPTY
    if types.is_integer(type_) or types.is_boolean(type_):
        return Kind.INT
    if types.is_floating(type_) or types.is_decimal(type_):
        return Kind.FLOAT
    is_text = (
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_fixed_size_binary,
    )
    if any(test(type_) for test in (*is_text, types.is_date, types.is_time, types.is_timestamp)):
        return Kind.BYTES
    raise DataError(
        f"{file}, column {name!r}: found the type {type_}, expected numbers, text, dates, or lists of these.",
        "Flatten the column, or leave it out of the file.",
    )


def _column(file: str, name: str, kind: Kind, array: pa.Array) -> Column:
    if kind is Kind.EMPTY:
        return Column(name, kind, None, np.zeros(len(array) + 1, np.int64))
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        array = array.flatten()  # Skips values hidden under null lists.
        if array.null_count:
            raise DataError(f"{file}, column {name!r}: found null inside a list, expected values.", "Leave it out.")
    else:
        sizes = array.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    try:
        return Column(name, kind, _cast(array.drop_null(), kind), offsets)
    except pa.ArrowInvalid as error:
        fix = "Store the column in a type that fits into int64."
        raise DataError(f"{file}, column {name!r}: {error}", fix) from error


def _cast(values: pa.Array, kind: Kind) -> pa.Array:
    steps = [_ARROW_TYPE[kind]]
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_temporal(values.type):
        steps = [pa.string(), pa.binary()]
    elif pa.types.is_fixed_size_binary(values.type) and not pa.types.is_decimal(values.type):
        steps = [pa.binary()]
    elif kind is Kind.FLOAT and (pa.types.is_decimal(values.type) or pa.types.is_float16(values.type)):
        steps = [pa.float64() if pa.types.is_decimal(values.type) else pa.float32(), pa.float32()]
    return reduce(lambda array, type_: array.cast(type_), steps, values)
