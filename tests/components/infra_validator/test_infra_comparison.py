"""When two answers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from components.infra_validator import comparison
from components.infra_validator.comparison import TOLERANCES, differences


def compared(got: Any, expected: Any, name: str = "score") -> list[str]:
    found = differences(4, "REST", {"score": np.array(got)}, {name: np.array(expected)}, TOLERANCES["float32"])
    return [str(difference) for difference in found]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([1.0], [1.00009]),
        ([0.0], [9e-6]),
        ([float("nan"), float("inf")], [float("nan"), float("inf")]),
        ([3], [3.0]),
        ([[1, 2]], [[1, 2]]),
        ([True], [True]),
    ],
)
def test_equal_up_to_the_order_of_sums(got: Any, expected: Any) -> None:
    assert compared(got, expected) == []


@pytest.mark.parametrize(
    ("got", "expected", "told"),
    [
        ([1.0], [1.0002], "output score is 1, expected 1.0002"),
        ([float("nan")], [1.0], "output score is nan, expected 1"),
        ([1], [2], "output score is 1, expected 2"),
        ([1.5], [1], "output score is 1.5, expected 1"),
        ([[1.0, 2.0]], [1.0, 2.0], "output score is of shape (1, 2), expected shape (2,)"),
        (["plus"], [1.0], "output score is plus, expected 1"),
        ([0.0] * 8, [1.0] * 8, "output score is [0, 0, 0, 0, 0, 0, … (8 values)], expected [1, 1, 1, 1, 1, 1, … (8"),
    ],
)
def test_what_differs_is_told(got: Any, expected: Any, told: str) -> None:
    [difference] = compared(got, expected)
    assert difference.startswith(f"row 4 over REST: {told}")


def test_the_only_output_needs_no_name() -> None:
    assert compared([1.0], [1.0], name="") == []


def test_other_outputs_are_told() -> None:
    assert compared([1.0], [1.0], name="scores") == [
        "row 4 over REST: the answer is outputs score, expected outputs scores"
    ]


def test_a_request_as_json() -> None:
    request = PredictRequest()
    request.model_spec.signature_name = "serving_default"
    request.inputs["examples"].CopyFrom(tf.make_tensor_proto([b"\xff", b"a"]))
    expected = (
        b'{"signature_name": "serving_default", '
        b'"instances": [{"examples": {"b64": "/w=="}}, {"examples": {"b64": "YQ=="}}]}'
    )
    assert comparison.request_to_json(request) == expected


def test_answers_as_arrays() -> None:
    texts = np.array([b""], object)
    one = comparison.answer_from_json(b'{"predictions": [[0.5, NaN]]}', {"p": np.zeros((1, 2), np.float32)})
    np.testing.assert_array_equal(one["p"], [[0.5, float("nan")]])
    two = comparison.answer_from_json(
        b'{"predictions": [{"a": "x", "b_bytes": {"b64": "/w=="}}]}', {"a": texts, "b_bytes": texts}
    )
    assert (two["a"].tolist(), two["b_bytes"].tolist()) == ([b"x"], [b"\xff"])
    alone = comparison.answer_from_json(b'{"predictions": [{"b64": "/w=="}]}', {"c_bytes": texts})
    assert alone["c_bytes"].tolist() == [b"\xff"]
