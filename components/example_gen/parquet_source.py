"""Parquet, by row groups. The file says what its columns hold; unlike for CSV, nothing is inferred.

Unless `data.columns` says otherwise, integers and booleans become integers; floats and decimals become floats; text and
bytes become bytes; dates and times become the ISO text that the same table saved as CSV would hold; lists of these
become several values. Null, and what `data.na_values` names, becomes a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from components.example_gen.arrow_columns import ArrowColumns
from components.example_gen.contract import SHARD_BYTES, Batch, Piece, Place
from components.example_gen.conversion import Conversion
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from contracts.errors import DataError

_BATCH_ROWS = 16_384


class ParquetSource:
    """Parquet; see `contract.Source`. Only a value that does not read as declared makes a row malformed.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._conversion = Conversion(reading)
        self._arrow_column = ArrowColumns(self._conversion).column

    def peek_columns(self, file: str) -> list[str]:
        return list(_flat_schema(_open(file)).names)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        files = [str(file) for file in inputs.files]
        first = _flat_schema(_open(files[0]))
        pieces: list[Piece] = []
        for file in files:
            opened = _open(file)
            names = _flat_schema(opened).names
            if names != first.names:
                raise DataError(
                    f"{file} has the columns {names}, {files[0]} has {first.names}.",
                    "Give all files the same columns.",
                )
            pieces += _row_groups(file, opened.metadata)
        if not pieces:
            raise DataError(f"{files[0]} has no rows, expected at least one.", "Check data.path.")
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        schema = _flat_schema(_open(piece.file))
        kinds = {field.name: _kind(piece.file, field.name, field.type) for field in schema}
        return self._conversion.with_declared(kinds)

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        opened = _open(piece.file)
        groups = range(piece.start, piece.end or piece.start)
        first_row = 1 + sum(opened.metadata.row_group(group).num_rows for group in range(piece.start))
        for batch in opened.iter_batches(_BATCH_ROWS, list(groups), use_threads=False):
            flat = _flattened(pa.Table.from_batches([batch])).combine_chunks()
            columns = [
                self._arrow_column(piece.file, name, kinds[name], _array(flat.column(i)))
                for i, name in enumerate(flat.column_names)
            ]
            yield Batch(columns, batch.num_rows, place=partial(_place, first_row))
            first_row += batch.num_rows


def _place(first_row: int, position: int) -> Place:
    return first_row + position, None


def _flat_schema(file: pq.ParquetFile) -> pa.Schema:
    return _flattened(file.schema_arrow.empty_table()).schema


def _flattened(table: pa.Table) -> pa.Table:
    """The fields of a struct as columns of their own, such as `place.island`."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


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
        "Write it in another type, or leave it out of the file.",
    )
