"""JSON lines, plain or gzip: one object a line, whose keys are the columns.

Integers, floats and text stay what they are; true and false become 1 and 0; null and a missing key become a missing
value; a list becomes several values; an object becomes columns such as `place.island`. A column that mixes text with
other values is text, and holds the JSON form of the others. `data.na_values` and `data.columns` apply as in CSV. Read
with Python's json: arrow's reader turns text that looks like a time into a timestamp.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from components.example_gen.blocks import Block, cut_file, read_blocks
from components.example_gen.contract import Batch, Piece, Place, merge_kinds
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from components.example_gen.rows import Row, RowColumns, to_row, type_name
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

_PEEK_ROWS = 100
_HUGE = re.compile(rb"[eE]\+?[0-9]{3}")


class JsonlSource:
    """JSON lines; see `contract.Source`.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._encoding = reading.encoding
        self._to_columns = RowColumns(reading)

    def peek_columns(self, file: str) -> list[str]:
        block = next(read_blocks(self._whole(file), None), None)
        rows = (
            [] if block is None else [row for _, _, row in islice(_parsed(block), _PEEK_ROWS) if isinstance(row, dict)]
        )
        if not rows:
            raise DataError(f"{file} holds no JSON object, expected one a line.", "Check data.path and data.format.")
        return list(dict.fromkeys(chain.from_iterable(rows)))

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        files = [str(file) for file in inputs.files]
        for file in files:
            if next(read_blocks(self._whole(file), None), None) is None:
                raise DataError(f"{file} is empty, expected one JSON object a line.", "Check how the file is written.")
        return [piece for file in files for piece in cut_file(self._whole(file), None)]

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        kinds: dict[str, Kind] = {}
        for block in read_blocks(piece, None):
            rows, rejected, _ = _rows(piece.file, block)
            if rejected and fail:
                raise rejected[0].as_error()
            kinds = merge_kinds([kinds, self._to_columns.kinds(rows)])
        return kinds

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        for block in read_blocks(piece, None):
            rows, rejected, places = _rows(piece.file, block)
            yield Batch(self._to_columns.columns(rows, kinds), len(rows), rejected, places.__getitem__)

    def _whole(self, file: str) -> Piece:
        return Piece(file, 0, None, os.path.getsize(file), 1, encoding=self._encoding)


def _rows(file: str, block: Block) -> tuple[list[Row], list[RejectedRow], list[Place]]:
    """Returns the rows, the malformed ones, and where each of the rows is."""
    rows: list[Row] = []
    rejected: list[RejectedRow] = []
    places: list[Place] = []
    for number, raw, row in _parsed(block):
        if isinstance(row, dict):
            rows.append(row)
            places.append((block.first_line + number, raw))
        else:
            column, reason = row
            rejected.append(RejectedRow(file, block.first_line + number, column, reason, raw))
    return rows, rejected, places


def _parsed(block: Block) -> Iterator[tuple[int, bytes, Row | tuple[str | None, str]]]:
    """Yields the number (from 0), the bytes, and the row or (column, what is wrong) of every line that is not blank."""
    for number, raw in enumerate(io.BytesIO(block.data)):
        if raw.strip():
            yield number, raw, _parse(raw)


def _parse(raw: bytes) -> Row | tuple[str | None, str]:
    try:
        text = raw.decode("utf-8-sig").rstrip("\r\n")
        value = json.loads(text, parse_float=_finite if _HUGE.search(raw) else None)
    except UnicodeDecodeError as error:
        return None, f"found the byte 0x{raw[error.start]:02x}, expected UTF-8"
    except (ValueError, RecursionError) as error:
        return None, f"found no JSON ({error}), expected one object a line"
    if not isinstance(value, dict):
        return None, f"found {type_name(value)}, expected one JSON object a line"
    return to_row(value)


def _finite(text: str) -> float:
    # Infinity, which 1e400 would become, is for those that write it.
    return min(max(float(text), -sys.float_info.max), sys.float_info.max)
