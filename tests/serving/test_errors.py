"""Status codes, and messages that a client may see."""

from __future__ import annotations

import pickle

import grpc
import pytest
import tensorflow as tf

from serving.errors import Code, ServingError, from_tensorflow


def test_codes_are_those_of_grpc() -> None:
    assert {code.name: code.number for code in Code} == {status.name: status.value[0] for status in grpc.StatusCode}
    assert Code.of_number(5) is Code.NOT_FOUND
    assert Code.of_number(99) is Code.UNKNOWN


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.INVALID_ARGUMENT, 400),
        (Code.FAILED_PRECONDITION, 400),
        (Code.OUT_OF_RANGE, 400),
        (Code.NOT_FOUND, 404),
        (Code.DEADLINE_EXCEEDED, 504),
        (Code.RESOURCE_EXHAUSTED, 429),
        (Code.UNAVAILABLE, 503),
        (Code.UNIMPLEMENTED, 501),
        (Code.INTERNAL, 500),
        (Code.UNKNOWN, 500),
        (Code.CANCELLED, 499),
    ],
)
def test_http_statuses_are_tensorflow_servings(code: Code, status: int) -> None:
    assert code.http_status == status


@pytest.mark.parametrize(
    "message",
    [
        "Bad value: 3",
        "Bad value: 3\n\t [[{{node model/dense/MatMul}}]]",
        "Bad value: 3\n\t [[{{node a}}]]\n\t [[b/_7]]",
        "2 root error(s) found.\n  (0) INVALID_ARGUMENT: Bad value: 3\n\t [[{{node a}}]]\n\t [[b/_7]]\n"
        "  (1) INVALID_ARGUMENT: Bad value: 3\n\t [[{{node a}}]]\n0 successful operations.",
        "2 root error(s) found.\n  (0) INVALID_ARGUMENT: Bad value: 3\n  (1) INVALID_ARGUMENT: Bad value: 3\n"
        "0 successful operations.\n0 derived errors ignored.",
        "Bad value: 3\n\nOriginal stack trace for 'a':\n  File \"/home/someone/model.py\", line 1",
        "Detected at node 'a' defined at (most recent call last):\n    File \"/home/someone/model.py\", line 1\n"
        "Node: 'a'\nBad value: 3\n\t [[{{node a}}]]",
    ],
)
def test_messages_lose_nodes_and_traces(message: str) -> None:
    error = from_tensorflow(tf.errors.InvalidArgumentError(None, None, message))
    assert (error.code, error.message) == (Code.INVALID_ARGUMENT, "Bad value: 3")


def test_brackets_of_the_message_itself_stay() -> None:
    error = from_tensorflow(tf.errors.OutOfRangeError(None, None, "indices[0] = [[7]] is not in [0, 5)"))
    assert (error.code, error.message) == (Code.OUT_OF_RANGE, "indices[0] = [[7]] is not in [0, 5)")


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(ServingError(Code.ABORTED, "no")))  # noqa: S301 - our own bytes
    assert (error.code, error.message, str(error)) == (Code.ABORTED, "no", "no")
