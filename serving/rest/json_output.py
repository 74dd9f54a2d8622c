"""Arrays as JSON, printed as TensorFlow Serving 2.16.1 prints them (util/json_tensor.cc).

A float is `%.6g` if that reads back as the same number, else `%.9g` (`%.17g` for a double), and has a `.0` if it would
look like an integer. Formatting and the check run over whole arrays unless these are small.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from serving.errors import invalid

Array = np.ndarray[Any, Any]

BYTES_SUFFIX = "_bytes"
SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# Numbers that `%.6g` and `%.9g` print without an exponent.
FULL_DIGITS = {np.dtype(np.float32): 9, np.dtype(np.float64): 17}
SHORT = 6
# TensorFlow's names for types that have another name in NumPy.
TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
# Rounds as C does; up to FEW numbers are faster printed one by one.
EXACT = {np.dtype(np.float32): struct.Struct("f"), np.dtype(np.float64): struct.Struct("d")}
FEW = 16


def predictions(outputs: Mapping[str, Array]) -> bytes:
    """The response to a request by rows: `predictions`, one value or object per row.

    Raises:
        ServingError: INVALID_ARGUMENT, an output has no rows, or not as many as the others.
    """
    size = _batch_size(outputs)
    columns = {name: list(_nested(tokens(name, array), array.shape, 1)) for name, array in sorted(outputs.items())}
    if len(columns) == 1:
        rows = ", ".join(next(iter(columns.values())))
    else:
        keys = [f"            {_quoted(name)}: " for name in columns]
        objects = (
            "\n        {\n" + ",\n".join(map(str.__add__, keys, values)) + "\n        }"
            for values in zip(*columns.values(), strict=True)
        )
        rows = ",".join(objects)
    closing = "\n    " if size else ""
    return f'{{\n    "predictions": [{rows}{closing}]\n}}'.encode()


def columns(outputs: Mapping[str, Array]) -> bytes:
    """The response to a request by columns: `outputs`, whole tensors."""
    values = {name: next(_nested(tokens(name, array), array.shape, 0)) for name, array in sorted(outputs.items())}
    if len(values) == 1:
        text = next(iter(values.values()))
    else:
        members = (f"        {_quoted(name)}: {value}" for name, value in values.items())
        text = "{\n" + ",\n".join(members) + "\n    }"
    return f'{{\n    "outputs": {text}\n}}'.encode()


def tokens(name: str, array: Array) -> list[str]:
    """The elements of an output as JSON, in C order.

    Raises:
        ServingError: INVALID_ARGUMENT, JSON cannot represent its type.
    """
    kind = array.dtype.kind
    flat = array.reshape(-1)
    if array.dtype in FULL_DIGITS:
        return decimals(flat)
    if kind in "iu":
        return list(map(str, flat.tolist()))
    if kind == "b":
        return ["true" if value else "false" for value in flat.tolist()]
    if kind == "O":
        return [_text(value, name.endswith(BYTES_SUFFIX)) for value in flat.tolist()]
    raise invalid(f"Failed to write JSON value for tensor type: {TYPE_NAMES.get(array.dtype.name, array.dtype.name)}")


def decimals(flat: Array) -> list[str]:
    """The numbers of a vector of float32 or float64 as TensorFlow Serving prints them."""
    values = flat.tolist()
    if len(values) <= FEW:
        return [_decimal(value, EXACT[flat.dtype], FULL_DIGITS[flat.dtype]) for value in values]
    texts = (f"%.{SHORT}g " * len(values) % tuple(values)).split()
    finite = np.isfinite(flat)
    with np.errstate(over="ignore"):
        exact = np.array(list(map(float, texts)), np.float64).astype(flat.dtype) == flat
    full = f"%.{FULL_DIGITS[flat.dtype]}g"
    for index in np.flatnonzero(finite & ~exact).tolist():
        texts[index] = full % values[index]
    for index in np.flatnonzero(finite & (flat == np.trunc(flat))).tolist():
        if "." not in texts[index] and "e" not in texts[index]:
            texts[index] += ".0"
    for index in np.flatnonzero(~finite).tolist():
        texts[index] = SPECIAL[texts[index].replace("-nan", "nan")]
    return texts


def _decimal(value: float, exact: struct.Struct, full_digits: int) -> str:
    text = f"{value:.{SHORT}g}"
    if not math.isfinite(value):
        return SPECIAL[text]
    if exact.unpack(exact.pack(float(text)))[0] != value:
        text = f"{value:.{full_digits}g}"
    return f"{text}.0" if value.is_integer() and "." not in text and "e" not in text else text


def results(rows: Sequence[str]) -> bytes:
    """The response to classify or regress: `results`, one JSON text per example."""
    return f'{{\n    "results": [{", ".join(rows)}\n    ]\n}}'.encode()


def error(message: str) -> bytes:
    """The response to a failed request."""
    return f'{{\n    "error": {_quoted(message)}\n}}'.encode()


def _batch_size(outputs: Mapping[str, Array]) -> int:
    size = -1
    for name, array in sorted(outputs.items()):
        if array.ndim == 0:
            raise invalid(f"Tensor name: {name} has no shape information ")
        if size not in {-1, array.shape[0]}:
            raise invalid(f"Tensor name: {name} has inconsistent batch size: {array.shape[0]} expecting: {size}")
        size = array.shape[0]
    return size


def _nested(flat: list[str], shape: Sequence[int], outer: int) -> Iterator[str]:
    """Yields the JSON of each sub-array that remains after iterating over the first `outer` dimensions."""
    for axis in range(len(shape) - 1, outer - 1, -1):
        size = shape[axis]
        count = math.prod(shape[:axis])
        flat = ["[" + ", ".join(flat[index * size : (index + 1) * size]) + "]" for index in range(count)]
    return iter(flat)


def _text(value: bytes, as_base64: bool) -> str:
    if not as_base64:
        try:
            return _quoted(value.decode())
        except UnicodeDecodeError:
            # TensorFlow Serving would send something that no JSON parser accepts.
            as_base64 = True
    return f'{{"b64": "{base64.b64encode(value).decode()}"}}'


def _quoted(text: str) -> str:
    return orjson.dumps(text.encode(errors="replace").decode()).decode()
