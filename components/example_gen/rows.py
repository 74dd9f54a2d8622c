"""Rows of plain Python values, from JSON lines or a Python module, as typed columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from components.example_gen.conversion import Conversion, beyond_float32
from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind, fits_int64
from components.example_gen.reading import ReadingSettings

Value: TypeAlias = int | float | str | bytes
Row: TypeAlias = dict[str, list[Value]]


def to_row(values: Mapping[str, object]) -> Row | tuple[str | None, str]:
    """Returns a row with a list of values by column; or else the column and what is wrong with it.

    What is in an object becomes a column of its own: `{"place": {"island": "Dream"}}` has the column `place.island`.
    """
    row: Row = {}
    for name, cell in _flat(values):
        if name in row:
            return name, "found it twice: as a key with a dot, and as a key in an object"
        values_of_cell: list[Any] = cell if isinstance(cell, list) else [] if cell is None else [cell]
        if odd := [value for value in values_of_cell if not isinstance(value, int | float | str | bytes)]:
            return name, f"found {type_name(odd[0])} inside, expected numbers and text, or a list of them"
        row[name] = values_of_cell
    return row


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, cell in values.items():
        if isinstance(cell, dict):
            yield from _flat(cell, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", cell


def type_name(value: object) -> str:
    """What a value is called in JSON."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    number = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return names.get(type(value), number)


class RowColumns:
    """Makes columns of rows.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._conversion = Conversion(reading)

    def kinds(self, rows: Sequence[Row]) -> dict[str, Kind]:
        """Returns the kinds of the columns, in the order in which they appear."""
        kinds: dict[str, Kind] = {}
        missing = self._conversion.missing
        for row in rows:
            for name, values in row.items():
                present = [value for value in values if value not in missing] if missing else values
                kinds[name] = max(kinds.get(name, Kind.EMPTY), Kind.EMPTY, *map(_kind, present))
        return self._conversion.with_declared(kinds)

    def columns(self, rows: Sequence[Row], kinds: Mapping[str, Kind]) -> list[Column]:
        """Returns a typed column for each of `kinds`."""
        return [self._column(name, kind, [row.get(name, []) for row in rows]) for name, kind in kinds.items()]

    def _column(self, name: str, kind: Kind, cells: list[list[Value]]) -> Column:
        if missing := self._conversion.missing:
            cells = [[value for value in cell if value not in missing] for cell in cells]
        offsets = np.fromiter(accumulate((len(cell) for cell in cells), initial=0), np.int64, len(cells) + 1)
        flat = list(chain.from_iterable(cells))
        if self._conversion.declared_kind(name) is not None:
            texts = pa.array([_text(value) for value in flat], pa.binary())
            return self._conversion.column(name, kind, texts.cast(pa.string()), offsets)
        if kind is Kind.EMPTY:
            return Column(name, kind, None, offsets)
        if kind is Kind.INT:
            return Column(name, kind, pa.array([int(value) for value in flat], pa.int64()), offsets)
        if kind is Kind.FLOAT:
            doubles = pa.array([float(value) for value in flat], pa.float64())
            values = doubles.cast(pa.float32())
            return Column(name, kind, values, offsets, too_large=beyond_float32(values, doubles))
        return Column(name, kind, pa.array([_text(value) for value in flat], pa.binary()), offsets)


def _kind(value: Value) -> Kind:
    if isinstance(value, str | bytes):
        return Kind.BYTES
    if isinstance(value, float):
        return Kind.FLOAT
    return Kind.INT if fits_int64(value) else Kind.BYTES


def _text(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    # JSON may escape half of a surrogate pair, which UTF-8 cannot encode.
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")
