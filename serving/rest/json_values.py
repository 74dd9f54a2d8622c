"""JSON as TensorFlow Serving 2.16.1 reads and quotes it (util/json_tensor.cc): documents, single values, arrays.

Lists are taken apart level by level with iterators implemented in C; only a refused value is walked element by element,
to say which one was wrong.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
from array import array as packed
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from serving.errors import Code, ServingError, invalid
from serving.protocol import B64
from serving.rest.json_output import TYPE_NAMES

if TYPE_CHECKING:
    from serving.models.servable import TensorSpec


Document = dict[str, Any]

MAX_DEPTH = 64
SHOWN = 512
# "Inf" is part of both spellings of infinity.
NOT_NUMBERS = (b"NaN", b"Infinity")
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def parse(body: bytes) -> Document:
    """Reads a request's JSON object; bare NaN, Infinity and -Infinity are numbers.

    Raises:
        ServingError: INVALID_ARGUMENT, the body is not JSON, not an object, not UTF-8, or nested too deeply.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not any(word in body for word in NOT_NUMBERS):
            raise invalid(f"JSON Parse error: {error.msg} at offset: {error.pos}") from error
        document = _parse_with_nan(body)
    if not isinstance(document, dict):
        raise invalid(f"JSON Value: {show(document)} Is not object")
    return document


def show(value: Any) -> str:
    """A JSON value as quoted in messages; if it is long, without its middle."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return f"({kind(value)}, deeply nested)"
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}…{text[-SHOWN // 2 :]}"


def kind(value: Any) -> str:
    """TensorFlow Serving's word for the type of a JSON value."""
    if value is None or isinstance(value, bool):
        return {None: "Null", True: "True", False: "False"}[value]
    names = {dict: "Object", list: "Array", str: "String", int: "Number", float: "Number"}
    return names[type(value)]


def is_b64(value: Any) -> bool:
    """Whether a JSON value is an object of the form {"b64": "…"}."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(B64), str)


def text_bytes(value: Any) -> bytes:
    """The bytes of a JSON string or of an object of the form {"b64": "…"}.

    Raises:
        ServingError: INVALID_ARGUMENT, the value is another object, not base64, or half of a surrogate pair.
    """
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise invalid("JSON Parse error: The surrogate pair in string is invalid.") from error
    if not is_b64(value):
        raise invalid(f"JSON Value: {show(value)} not formatted correctly for base64 data")
    digits = "".join(value[B64].split())
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("Unable to base64 decode") from error


def _parse_with_nan(body: bytes) -> Any:
    if _depth(body) > MAX_DEPTH:
        raise invalid(f"JSON Parse error: nested deeper than {MAX_DEPTH} levels")
    try:
        return json.loads(body.decode(), parse_int=_integer)
    except UnicodeDecodeError as error:
        raise invalid(f"JSON Parse error: Invalid encoding in string. at offset: {error.start}") from error
    except json.JSONDecodeError as error:
        raise invalid(f"JSON Parse error: {error.msg} at offset: {error.pos}") from error


def _depth(body: bytes) -> int:
    marks = np.frombuffer(STRINGS.sub(b"", body), np.uint8)
    steps = np.isin(marks, (ord("["), ord("{"))).astype(np.int64) - np.isin(marks, (ord("]"), ord("}")))
    return int(steps.cumsum().max(initial=0))


def _integer(digits: str) -> int | float:
    number = int(digits) if len(digits) <= 20 else float(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)


Array = np.ndarray[Any, Any]

# NumPy's limit, less one for the rows.
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
# NumPy's letters for C's types.
FLOATS = {"float": "f", "double": "d"}
NUMBERS = frozenset((int, float))
TEXTS = frozenset((str, dict))


def to_array(value: Any, spec: TensorSpec) -> Array:
    """A JSON value as an array of an input's type.

    Raises:
        ServingError: INVALID_ARGUMENT, values do not fit; UNIMPLEMENTED, JSON cannot represent the type.
    """
    type_name = type_name_of(spec)
    array = dense_array(value, type_name)
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


def dense_array(value: Any, type_name: str) -> Array | None:
    """The value as an array, or None if it is not one of that type."""
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
        # As in C++, a double beyond float32's range becomes infinite.
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
