"""Arrow arrays of any type, from Parquet or TFRecord, as typed columns."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.conversion import Conversion, beyond_float32
from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind
from contracts.errors import DataError

_ARROW_TYPE = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float32(), Kind.BYTES: pa.binary()}


class ArrowColumns:
    """Makes columns of arrays.

    Args:
        conversion: How values are read.
    """

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion

    def column(self, file: str, name: str, kind: Kind, array: pa.Array) -> Column:
        """Converts the array of a column.

        Args:
            file: Where it is from, for the messages.
            name: The column's name.
            kind: What it holds.
            array: (rows,) values or lists of them, null where there is none.

        Raises:
            DataError: A value does not fit into the column's type, or a list holds null.
        """
        if kind is Kind.EMPTY or pa.types.is_null(array.type):
            empty = np.zeros(len(array) + 1, np.int64)
            return Column(name, kind, None if kind is Kind.EMPTY else pa.array([], _ARROW_TYPE[kind]), empty)
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
            sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
            array = array.flatten()  # Skips values hidden under null lists.
            if array.null_count:
                raise DataError(f"{file}, column {name!r}: found null inside a list, expected values.", "Leave it out.")
        else:
            sizes = np.ones(len(array), np.int64)
        array = self._without_missing(array)
        if array.null_count:
            rows = np.repeat(np.arange(len(sizes)), sizes)
            sizes = np.bincount(rows[array.is_valid().to_numpy(zero_copy_only=False)], minlength=len(sizes))
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        values = array.drop_null()
        try:
            if self._conversion.declared_kind(name) is not None:
                return self._conversion.column(name, kind, values.cast(pa.string()), offsets)
            typed = _cast(values, kind)
        except pa.ArrowInvalid as error:
            fix = "Store the column in a type that fits into int64."
            raise DataError(f"{file}, column {name!r}: {error}", fix) from error
        return Column(name, kind, typed, offsets, too_large=beyond_float32(typed, values))

    def _without_missing(self, array: pa.Array) -> pa.Array:
        types = pa.types
        text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        known = any(test(array.type) for test in (*text, types.is_integer, types.is_floating))
        return self._conversion.without_missing(array) if known else array


def _cast(values: pa.Array, kind: Kind) -> pa.Array:
    steps = [_ARROW_TYPE[kind]]
    if pa.types.is_temporal(values.type):
        steps = [pa.string(), pa.binary()]
    elif pa.types.is_fixed_size_binary(values.type) and not pa.types.is_decimal(values.type):
        steps = [pa.binary()]
    elif kind is Kind.FLOAT and (pa.types.is_decimal(values.type) or pa.types.is_float16(values.type)):
        steps = [pa.float64() if pa.types.is_decimal(values.type) else pa.float32(), pa.float32()]
    return reduce(lambda array, type_: array.cast(type_), steps, values)
