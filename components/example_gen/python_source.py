"""Rows from a Python module: its function `rows()` yields a dict a row, from column to number, text or a list."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from itertools import islice

from components.example_gen.contract import Batch, Piece, Place, merge_kinds
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from components.example_gen.rows import Row, RowColumns, to_row, type_name
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

FUNCTION = "rows"
_BATCH_ROWS = 16_384
_PEEK_ROWS = 100


class PythonSource:
    """The rows that modules yield, a piece a module; see `contract.Source`.

    `rows()` is called once for the columns and twice for the rows, and must yield the same each time.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._to_columns = RowColumns(reading)

    def peek_columns(self, file: str) -> list[str]:
        return list(dict.fromkeys(name for row in islice(_rows(file), _PEEK_ROWS) for name in row))

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        for file in inputs.files:
            if next(_rows(str(file)), None) is None:
                raise DataError(f"{FUNCTION}() in {file} yields nothing, expected rows.", "See what it reads.")
        return [Piece(str(file), 0, None, os.path.getsize(file)) for file in inputs.files]

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        kinds: dict[str, Kind] = {}
        for rows, rejected, _ in _batches(piece.file):
            if rejected and fail:
                raise rejected[0].as_error()
            kinds = merge_kinds([kinds, self._to_columns.kinds(rows)])
        return kinds

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        for rows, rejected, places in _batches(piece.file):
            yield Batch(self._to_columns.columns(rows, kinds), len(rows), rejected, places.__getitem__)


def _batches(file: str) -> Iterator[tuple[list[Row], list[RejectedRow], list[Place]]]:
    numbered = enumerate(_rows(file), 1)
    while some := list(islice(numbered, _BATCH_ROWS)):
        rows: list[Row] = []
        rejected: list[RejectedRow] = []
        places: list[Place] = []
        for number, values in some:
            row = to_row(values)
            if isinstance(row, dict):
                rows.append(row)
                places.append((number, None))
            else:
                rejected.append(RejectedRow(file, number, row[0], row[1], None))
        yield rows, rejected, places


def _rows(file: str) -> Iterator[Mapping[str, object]]:
    spec = importlib.util.spec_from_file_location("millrace_rows", file)
    if spec is None or spec.loader is None:
        raise DataError(f"{file} is not a Python module.", "Let its name end in .py.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, FUNCTION, None)):
        raise DataError(f"{file} has no function {FUNCTION}().", f"Define {FUNCTION}(), which yields a dict a row.")
    for number, row in enumerate(module.rows(), 1):
        if not isinstance(row, Mapping):
            raise DataError(
                f"{FUNCTION}() in {file} yields {type_name(row)} as row {number}, expected a dict of values by column.",
                "Yield a dict a row.",
            )
        yield row
