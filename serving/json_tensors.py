"""JSON values as arrays of a signature's types, with the rules and texts of TensorFlow Serving 2.16.1.

Lists are taken apart level by level with iterators of C; only a value that is refused is walked one by one, to say
which was wrong.
"""

from __future__ import annotations

from array import array as packed
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from serving.errors import Code, ServingError
from serving.json_output import TYPE_NAMES
from serving.json_values import invalid, is_b64, kind, show, text_bytes

if TYPE_CHECKING:
    from serving.servable import TensorSpec

Array = np.ndarray[Any, Any]

# NumPy's limit, one of which goes to the rows.
MAX_RANK = 31
INT32 = (-(2**31), 2**31 - 1)
BOUNDS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint8": (0, 2**8 - 1),
    "int32": INT32,
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
# The letters of C's types.
FLOATS = {"float": "f", "double": "d"}
NUMBERS = frozenset((int, float))
TEXTS = frozenset((str, dict))


def tensor(value: Any, spec: TensorSpec) -> Array:
    """A JSON value as an array of an input's type.

    Raises:
        ServingError: INVALID_ARGUMENT, values do not fit; UNIMPLEMENTED, JSON has no form for the type.
    """
    type_name = type_name_of(spec)
    array = dense(value, type_name)
    if array is not None:
        return array
    shape: list[int] = []
    inner = value
    while isinstance(inner, list):
        shape.append(len(inner))
        if len(shape) > MAX_RANK:
            raise invalid(f"JSON Value has more than {MAX_RANK} dimensions")
        inner = inner[0] if inner else None
    _refuse(value, 0, shape, type_name)
    raise invalid(f"JSON Value: {show(value)} is not a tensor of type: {type_name}")


def type_name_of(spec: TensorSpec) -> str:
    """TensorFlow's own name for the type of an input."""
    name = str(spec.dtype.name)
    return TYPE_NAMES.get(name, name)


def dense(value: Any, type_name: str) -> Array | None:
    """The value as an array, or None where it is not one of that type."""
    shape: list[int] = []
    flat: list[Any] = [value]
    types = {type(value)}
    while types == {list}:
        lengths = set(map(len, flat))
        if len(lengths) != 1 or len(shape) > MAX_RANK:
            return None
        shape.append(lengths.pop())
        flat = list(chain.from_iterable(flat))
        types = set(map(type, flat))
    array = _leaves(flat, types, type_name)
    return None if array is None else array.reshape(shape)


def _leaves(flat: list[Any], types: set[type], type_name: str) -> Array | None:
    if type_name in FLOATS and types <= NUMBERS:
        # A double beyond float32 is infinite in it, as in C++.
        return np.asarray(packed(FLOATS[type_name], flat))
    if type_name in BOUNDS and types <= {int}:
        low, high = BOUNDS[type_name]
        return np.array(flat, type_name) if not flat or (min(flat) >= low and max(flat) <= high) else None
    if type_name == "bool" and types <= {bool}:
        return np.array(flat, bool)
    if type_name == "string" and types <= TEXTS and (dict not in types or all(map(_is_text, flat))):
        array = np.empty(len(flat), object)
        array[:] = list(map(text_bytes, flat))
        return array
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or is_b64(value)


def _refuse(value: Any, level: int, shape: list[int], type_name: str) -> None:
    """Raises for the first value that does not fit, in the order of TensorFlow Serving's walk."""
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                f"JSON Value: {show(value)} found at incorrect level: {level + 1} in the JSON DOM. "
                f"Expected at level: {len(shape)}"
            )
        if type_name == "string" and isinstance(value, dict):
            text_bytes(value)
        elif not isinstance(value, dict) and type_name not in {*FLOATS, *BOUNDS, "bool", "string"}:
            raise ServingError(Code.UNIMPLEMENTED, f"Conversion of JSON Value: {show(value)} to type: {type_name}")
        elif _leaves([value], {type(value)}, type_name) is None:
            raise invalid(f"JSON Value: {show(value)} Type: {kind(value)} is not of expected type: {type_name}")
        return
    if level >= len(shape):
        raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise invalid(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: {shape[level]}"
        )
    for inner in value:
        _refuse(inner, level + 1, shape, type_name)
