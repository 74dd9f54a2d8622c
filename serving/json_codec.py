"""JSON requests as arrays, with the rules and texts of TensorFlow Serving 2.16.1 (util/json_tensor.cc).

    parse(body)                       bytes -> the request's JSON object
    signature_name(document)          which signature it asks for
    predict_inputs(document, inputs)  -> (arrays by name, whether rows were given)

Lists are taken apart level by level with iterators of C; only a request that is refused is walked value by value,
to say which value was wrong.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
from array import array as packed
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from serving.errors import Code, ServingError
from serving.json_output import TYPE_NAMES

if TYPE_CHECKING:
    from serving.servable import TensorSpec

Array = np.ndarray[Any, Any]
Document = dict[str, Any]

MAX_DEPTH = 64
# NumPy's limit, one of which goes to the rows.
MAX_RANK = 31
SHOWN = 512
B64 = "b64"
# "Inf" is part of both spellings of infinity.
NOT_NUMBERS = (b"NaN", b"Infinity")
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
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


def invalid(message: str) -> ServingError:
    """An INVALID_ARGUMENT with this message."""
    return ServingError(Code.INVALID_ARGUMENT, message)


def parse(body: bytes) -> Document:
    """Reads a request's JSON object; bare NaN, Infinity and -Infinity are numbers.

    Raises:
        ServingError: INVALID_ARGUMENT, it is not JSON, not an object, not UTF-8, or nested too deeply.
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


def signature_name(document: Document) -> str:
    """Which signature a request asks for; empty for the default one.

    Raises:
        ServingError: INVALID_ARGUMENT, its name is not a string, or has half of a surrogate pair.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {show(document)} not formatted correctly. 'signature_name' key must be a string value."
        )
    text_bytes(name)
    return name


def predict_inputs(document: Document, specs: Mapping[str, TensorSpec]) -> tuple[dict[str, Array], bool]:
    """Takes the inputs of a predict request.

    Args:
        document: The request: `instances` holds rows, `inputs` whole tensors.
        specs: The signature's inputs.

    Returns:
        An array for each input, of the signature's type and the request's shape; and whether they came as rows.

    Raises:
        ServingError: INVALID_ARGUMENT, values do not fit; UNIMPLEMENTED, JSON has no form for the input's type.
    """
    if not specs:
        raise invalid(f"Failed to get input map for signature: {signature_name(document) or 'DEFAULT'}")
    rows = document.get("instances")
    if "instances" in document and "inputs" in document:
        raise invalid(
            f"JSON Value: {show(document)} Not formatted correctly expecting only one of 'inputs' or 'instances' "
            "keys to exist "
        )
    if "inputs" in document:
        return _from_columns(document["inputs"], specs), False
    if "instances" not in document:
        raise invalid("Missing 'inputs' or 'instances' key")
    if not isinstance(rows, list):
        raise invalid(f"JSON Value: {show(document)} Expecting 'instances' to be an list/array")
    if not rows:
        raise invalid(f"JSON Value: {show(document)} No values in 'instances' array")
    return _from_rows(rows, specs), True


def show(value: Any) -> str:
    """A JSON value as messages quote it, its middle left out where it is long."""
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
        ServingError: INVALID_ARGUMENT, it is another object, not base64, or half of a surrogate pair.
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


def _from_columns(value: Any, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    if not isinstance(value, dict) or is_b64(value):
        if len(specs) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
                "tensorinfo_map"
            )
        name, spec = next(iter(specs.items()))
        return {name: tensor(value, spec)}
    for name in specs:
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
    return {name: tensor(value[name], spec) for name, spec in specs.items()}


def _from_rows(rows: list[Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    if not isinstance(rows[0], dict) and len(specs) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
            "tensorinfo_map"
        )
    if isinstance(rows[0], dict) and not is_b64(rows[0]):
        return _from_objects(rows, specs)
    name, spec = next(iter(specs.items()))
    for index, row in enumerate(rows) if dict in set(map(type, rows)) else ():
        if isinstance(row, dict) and not is_b64(row):
            raise invalid(f"Expecting value/list but got object at item {index} of input list")
    return {name: _column(rows, spec, "of 'instances' list.")}


def _from_objects(rows: list[Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    names = specs.keys()
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or is_b64(row):
            raise invalid(f"Expecting object but got list at item {index} of input list")
        if row.keys() == names:
            continue
        where = f"Failed to process element: {index}"
        for key in row.keys() - names:
            raise invalid(
                f"{where} key: {key} of 'instances' list. Error: {Code.INVALID_ARGUMENT.name}: "
                f"JSON object: does not have named input: {key}"
            )
        raise invalid(
            f"{where} of 'instances' list. JSON object: {show(row)} keys must be equal to: {','.join(sorted(names))}"
        )
    return {
        name: _column([row[name] for row in rows], spec, f"key: {name} of 'instances' list.")
        for name, spec in specs.items()
    }


def _column(rows: list[Any], spec: TensorSpec, where: str) -> Array:
    array = _dense(rows, _type_name(spec))
    if array is not None:
        return array
    first: Array | None = None
    for index, row in enumerate(rows):
        try:
            value = tensor(row, spec)
            first = value if first is None else first
            if value.size != first.size:
                raise invalid(f"Expecting tensor size: {first.size} but got: {value.size}")
            if value.shape != first.shape:
                raise invalid(f"Expecting shape {_shape(first)} but got: {_shape(value)}")
        except ServingError as error:
            message = f"Failed to process element: {index} {where} Error: {error.code.name}: {error.message}"
            raise invalid(message) from error
    raise invalid(f"JSON Value: {show(rows)} is not a tensor of type: {_type_name(spec)}")


def tensor(value: Any, spec: TensorSpec) -> Array:
    """A JSON value as an array of an input's type.

    Raises:
        ServingError: As `predict_inputs`.
    """
    type_name = _type_name(spec)
    array = _dense(value, type_name)
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


def _type_name(spec: TensorSpec) -> str:
    name = str(spec.dtype.name)
    return TYPE_NAMES.get(name, name)


def _dense(value: Any, type_name: str) -> Array | None:
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


def _shape(array: Array) -> str:
    return "[" + ",".join(map(str, array.shape)) + "]"
