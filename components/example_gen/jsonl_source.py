"""JSON lines, plain or gzip: one object a line, whose keys are the columns.

Integers, floats and text stay what they are; true and false become 1 and 0; null and a missing key become a missing
value; a list becomes several values. A column that mixes text with other values is text, and holds the JSON form of the
others. Read with Python's json: arrow's reader turns text that looks like a time into a timestamp.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain, islice

import numpy as np
import pyarrow as pa

from components.example_gen.blocks import Block, cut_file, read_blocks
from components.example_gen.contract import Batch, Piece
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind, fits_int64
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

_PEEK_ROWS = 100
Row = dict[str, list[int | float | str]]


class JsonlSource:
    """JSON lines; see `contract.Source`."""

    def peek_columns(self, file: str) -> list[str]:
        block = next(read_blocks(_whole(file), quoting=False), None)
        rows = (
            [] if block is None else [row for _, _, row in islice(_parsed(block), _PEEK_ROWS) if isinstance(row, dict)]
        )
        if not rows:
            raise DataError(f"{file} holds no JSON object, expected one a line.", "Check data.path and data.format.")
        return list(dict.fromkeys(chain.from_iterable(rows)))

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        files = [str(file) for file in inputs.files]
        for file in files:
            if next(read_blocks(_whole(file), quoting=False), None) is None:
                raise DataError(f"{file} is empty, expected one JSON object a line.", "Check how the file is written.")
        return [piece for file in files for piece in cut_file(_whole(file), quoting=False)]

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        kinds: dict[str, Kind] = {}
        for block in read_blocks(piece, quoting=False):
            rows, rejected = _rows(piece.file, block)
            if rejected and fail:
                raise rejected[0].as_error()
            for row in rows:
                for name, values in row.items():
                    kinds[name] = max(kinds.get(name, Kind.EMPTY), Kind.EMPTY, *map(_kind, values))
        return kinds

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        for block in read_blocks(piece, quoting=False):
            rows, rejected = _rows(piece.file, block)
            yield Batch([_column(name, kind, rows) for name, kind in kinds.items()], len(rows), rejected)


def _whole(file: str) -> Piece:
    return Piece(file, 0, None, os.path.getsize(file), 1)


def _rows(file: str, block: Block) -> tuple[list[Row], list[RejectedRow]]:
    rows, rejected = [], []
    for number, raw, row in _parsed(block):
        if isinstance(row, dict):
            rows.append(row)
        else:
            column, reason = row
            rejected.append(RejectedRow(file, block.first_line + number, column, reason, raw))
    return rows, rejected


def _parsed(block: Block) -> Iterator[tuple[int, bytes, Row | tuple[str | None, str]]]:
    """Yields the number (from 0), the bytes, and the row or (column, what is wrong) of every line that is not blank."""
    for number, raw in enumerate(io.BytesIO(block.data)):
        if raw.strip():
            yield number, raw, _parse(raw)


def _parse(raw: bytes) -> Row | tuple[str | None, str]:
    try:
        value = json.loads(raw.decode("utf-8-sig").rstrip("\r\n"))
    except UnicodeDecodeError as error:
        return None, f"found the byte 0x{raw[error.start]:02x}, expected UTF-8"
    except (ValueError, RecursionError) as error:
        return None, f"found no JSON ({error}), expected one object a line"
    if not isinstance(value, dict):
        return None, f"found {_json_type(value)}, expected one JSON object a line"
    row: Row = {}
    for name, cell in value.items():
        values = cell if isinstance(cell, list) else [] if cell is None else [cell]
        if odd := [v for v in values if v is None or isinstance(v, dict | list)]:
            return name, f"found {_json_type(odd[0])} inside, expected numbers and text, or a list of them"
        row[name] = values
    return row


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _kind(value: int | float | str) -> Kind:
    if isinstance(value, str):
        return Kind.BYTES
    if isinstance(value, float):
        return Kind.FLOAT
    return Kind.INT if fits_int64(value) else Kind.BYTES


def _column(name: str, kind: Kind, rows: list[Row]) -> Column:
    cells = [row.get(name, []) for row in rows]
    offsets = np.fromiter(accumulate((len(cell) for cell in cells), initial=0), np.int64, len(cells) + 1)
    flat = list(chain.from_iterable(cells))
    if kind is Kind.EMPTY:
        return Column(name, kind, None, offsets)
    if kind is Kind.INT:
        values = pa.array([int(value) for value in flat], pa.int64())
    elif kind is Kind.FLOAT:
        values = pa.array([float(value) for value in flat], pa.float64()).cast(pa.float32())
    else:
        values = pa.array([_text(value) for value in flat], pa.binary())
    return Column(name, kind, values, offsets)


def _text(value: int | float | str) -> bytes:
    # JSON may escape half of a surrogate pair, which UTF-8 cannot encode.
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")
