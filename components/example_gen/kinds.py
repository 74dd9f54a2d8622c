"""The types of columns: the rules of TFX's CsvExampleGen, applied to whole arrow columns.

A cell is an integer if Python's `int` reads it and it fits 64 bits, else a float if `float` reads it, else text; an
integer that does not fit is text. A column has the kind of its least numeric cell; empty cells do not count.
Arrow's parsers decide nearly every column at once. They differ from Python on hexadecimals, signs, spaces, underscores
and special floats; where one of these may occur, Python decides.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class Kind(enum.IntEnum):
    """What a column holds, from the most to the least specific; the kind of two parts together is their maximum."""

    EMPTY = 0
    INT = 1
    FLOAT = 2
    BYTES = 3


def fits_int64(value: int) -> bool:
    """Whether `value` can be stored in an Int64List."""
    return _INT64_MIN <= value <= _INT64_MAX


def kind_of_cell(cell: bytes) -> Kind:
    """Returns the kind of one cell, as Python reads it."""
    if not cell:
        return Kind.EMPTY
    try:
        return Kind.INT if fits_int64(int(cell)) else Kind.BYTES
    except ValueError:
        try:
            float(cell)
        except ValueError:
            return Kind.BYTES
        return Kind.FLOAT


def infer_kind(cells: pa.Array, kind: Kind) -> Kind:
    """Returns the kind of a column after one more batch of its cells.

    Args:
        cells: (rows,) string array; null where the cell is empty.
        kind: The kind according to earlier batches.
    """
    cells = cells.drop_null() if cells.null_count else cells
    if kind is Kind.BYTES or not len(cells):
        return kind
    if kind <= Kind.INT and _reads_as_int(cells):
        return Kind.INT
    doubtful = _not_plainly_float(cells)
    return max(kind, Kind.FLOAT if len(doubtful) < len(cells) else Kind.EMPTY, _slow_kind(doubtful))


def to_values(cells: pa.Array, kind: Kind) -> pa.Array:
    """Converts the non-empty cells of a column.

    Args:
        cells: (values,) string array without nulls, whose kind is at most `kind`.
        kind: INT, FLOAT or BYTES.

    Returns:
        (values,) int64, float32 or binary array.
    """
    if kind is Kind.BYTES:
        return cells.cast(pa.binary())
    if kind is Kind.INT:
        try:
            return cells.cast(pa.int64())
        except pa.ArrowInvalid:
            return _by_python(cells, int, pa.int64())
    # Through float64, as protobuf's FloatList does: rounding a decimal directly to float32 can differ in the last bit.
    try:
        doubles = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return _by_python(cells, float, pa.float64()).cast(pa.float32())
    if not pc.all(pc.is_finite(doubles), min_count=0).as_py():  # Arrow's NaN may have the other sign.
        doubles = _by_python(cells, float, pa.float64())
    return doubles.cast(pa.float32())


def _reads_as_int(cells: pa.Array) -> bool:
    try:
        cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    # Arrow reads 0x10 as 16, which `int` refuses.
    return not any(pc.any(pc.match_substring(cells, x)).as_py() for x in "xX")


def _not_plainly_float(cells: pa.Array) -> pa.Array:
    """Returns the cells for which Python must decide."""
    try:
        doubles = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return cells
    # Newer versions of Arrow read a plus sign in a float, but not in an integer.
    if pc.any(pc.starts_with(cells, "+")).as_py():
        return cells
    # An integer beyond 64 bits reads as a float, but is text; nan(1) reads as NaN, but is text.
    plain = pc.and_(pc.is_finite(doubles), pc.less(pc.abs(doubles), 2.0**63))
    return cells.filter(pc.invert(plain))


def _slow_kind(cells: pa.Array) -> Kind:
    kind = Kind.EMPTY
    for cell in cells.unique():
        kind = max(kind, kind_of_cell(cell.as_buffer().to_pybytes()))
        if kind is Kind.BYTES:
            break
    return kind


def _by_python(cells: pa.Array, parse: Callable[[bytes], int | float], type_: pa.DataType) -> pa.Array:
    encoded = cells.cast(pa.binary()).dictionary_encode()
    values = pa.array([parse(cell) for cell in encoded.dictionary.to_pylist()], type_)
    return values.take(encoded.indices)
