"""Whether the answers of a server, over gRPC and as JSON over REST, are those that the Evaluator saw."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from contracts.model_reports import AnswerDifference, Tolerance

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]
MOST_SHOWN = 6


TOLERANCES = {
    # Units in the last place of float32 are 6e-8; some hundred of them are lost in long sums of mixed signs.
    "float32": Tolerance(1e-4, 1e-5),
    # A sum on the other side of a rounding border changes by 2^-10 or 2^-7 of its value, in each layer.
    "mixed_float16": Tolerance(1e-2, 2e-3),
    "mixed_bfloat16": Tolerance(5e-2, 1e-2),
}
"""By Keras's dtype policy.

The same kernels compute both answers, but one row at a time instead of thousands, in a graph that was optimized as a
whole: sums are added up in another order. Anything else that differs is a fault.
"""


def differences(
    row: int, api: str, got: Outputs, expected: Outputs, tolerance: Tolerance
) -> Iterator[AnswerDifference]:
    """What differs between two answers to one row, an entry an output.

    Args:
        row: The position of the row in the sample.
        api: `REST` or `gRPC`.
        got: The served outputs by name.
        expected: The Evaluator's outputs by name; an empty name stands for the only output.
        tolerance: For floats; all else must be equal.
    """
    named = {next(iter(got)): expected[""]} if set(expected) == {""} and len(got) == 1 else expected
    if set(got) != set(named):
        yield AnswerDifference(row, api, "", f"outputs {', '.join(sorted(got))}", f"outputs {', '.join(sorted(named))}")
        return
    for name, wanted in named.items():
        given = got[name]
        if given.shape != wanted.shape:
            yield AnswerDifference(row, api, name, f"of shape {given.shape}", f"shape {wanted.shape}")
        elif not _equal(given, wanted, tolerance):
            yield AnswerDifference(row, api, name, _shown(given), _shown(wanted))


def _equal(given: Array, wanted: Array, tolerance: Tolerance) -> bool:
    if not np.issubdtype(wanted.dtype, np.inexact):
        return bool(np.array_equal(given, wanted))
    return bool(
        given.dtype.kind in "iuf"
        and np.allclose(given, wanted, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    )


def _shown(values: Array) -> str:
    flat = values.ravel().tolist()
    texts = [f"{value:.7g}" if isinstance(value, float) else str(value) for value in flat[:MOST_SHOWN]]
    more = f", … ({len(flat)} values)" if len(flat) > MOST_SHOWN else ""
    return f"[{', '.join(texts)}{more}]" if len(flat) != 1 else texts[0]


def request_to_json(request: PredictRequest) -> bytes:
    """The request by rows; all its inputs hold serialized tf.Examples or other bytes, one a row."""
    columns = {name: tf.make_ndarray(tensor).tolist() for name, tensor in request.inputs.items()}
    rows = [
        {name: {"b64": base64.b64encode(value).decode()} for name, value in zip(columns, values, strict=True)}
        for values in zip(*columns.values(), strict=True)
    ]
    return json.dumps({"signature_name": request.model_spec.signature_name, "instances": rows}).encode()


def answer_from_json(answer: bytes, expected: Mapping[str, Array]) -> dict[str, Array]:
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
