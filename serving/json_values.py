"""JSON as TensorFlow Serving 2.16.1 reads and quotes it (util/json_tensor.cc): documents, single values, messages."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
from typing import Any

import numpy as np
import orjson

from serving.errors import Code, ServingError

Document = dict[str, Any]

MAX_DEPTH = 64
SHOWN = 512
B64 = "b64"
# "Inf" is part of both spellings of infinity.
NOT_NUMBERS = (b"NaN", b"Infinity")
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


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
