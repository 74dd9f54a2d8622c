"""A recorded request as the JSON of a REST client, and its answer as arrays."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest

Array = np.ndarray[Any, Any]


def to_json(request: PredictRequest) -> bytes:
    """The request by rows; all its inputs hold serialized tf.Examples or other bytes, one a row."""
    columns = {name: tf.make_ndarray(tensor).tolist() for name, tensor in request.inputs.items()}
    rows = [
        {name: {"b64": base64.b64encode(value).decode()} for name, value in zip(columns, values, strict=True)}
        for values in zip(*columns.values(), strict=True)
    ]
    return json.dumps({"signature_name": request.model_spec.signature_name, "instances": rows}).encode()


def from_json(answer: bytes, expected: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs in an answer by rows; texts as bytes where those are expected.

    Args:
        answer: What the server sent.
        expected: An array for each output; JSON has neither types nor, with a single output, its name.
    """
    rows = json.loads(answer)["predictions"]
    named = bool(rows) and isinstance(rows[0], dict) and "b64" not in rows[0]
    columns = {name: [row[name] for row in rows] for name in rows[0]} if named else {next(iter(expected)): rows}
    return {name: _array(values, expected.get(name)) for name, values in columns.items()}


def _array(values: list[Any], expected: Array | None) -> Array:
    if expected is not None and expected.dtype == object:
        return _strings(values)
    return np.array(values)


def _strings(values: list[Any]) -> Array:
    """Texts and base64 as bytes, with the shape of the nested lists."""
    given = np.array(values, object)
    decoded = [base64.b64decode(v["b64"]) if isinstance(v, dict) else str(v).encode() for v in given.ravel()]
    strings = np.empty(len(decoded), object)
    strings[:] = decoded
    return strings.reshape(given.shape)
