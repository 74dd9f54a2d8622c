"""What the server sends instead of an answer: a status code and a message, the same over REST and gRPC.

    ServingError    code: one of absl's canonical status codes; message: what the client reads

TensorFlow's exceptions are translated here and kept as `__cause__`: a client never sees a traceback.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

# TensorFlow lists the errors of all branches; the first one is enough.
FIRST_ROOT = re.compile(
    r"\d+ root error\(s\) found\.\s+\(0\) [A-Z_]+: (.*?)(?:\n\s*\(1\) .*|\n\d+ successful .*|$)", re.DOTALL
)
WHERE_BEFORE = re.compile(r"^(?:Graph execution error:\s*)?(?:Detected at node .*\n(?:[ \t<].*\n|Node: .*\n)*)+")
WHERE_AFTER = re.compile(r"(?:\n\s*\[\[|\n\s*Original stack trace for | \[Op:).*$", re.DOTALL)


class Code(enum.Enum):
    """The canonical status codes of absl, TensorFlow and gRPC.

    Attributes:
        number: The code on the wire of gRPC, 0 to 16.
        http_status: The HTTP status that TensorFlow Serving answers with (`http_server.cc`).
    """

    OK = (0, 200)
    CANCELLED = (1, 499)
    UNKNOWN = (2, 500)
    INVALID_ARGUMENT = (3, 400)
    DEADLINE_EXCEEDED = (4, 504)
    NOT_FOUND = (5, 404)
    ALREADY_EXISTS = (6, 409)
    PERMISSION_DENIED = (7, 403)
    RESOURCE_EXHAUSTED = (8, 429)
    FAILED_PRECONDITION = (9, 400)
    ABORTED = (10, 409)
    OUT_OF_RANGE = (11, 400)
    UNIMPLEMENTED = (12, 501)
    INTERNAL = (13, 500)
    UNAVAILABLE = (14, 503)
    DATA_LOSS = (15, 500)
    UNAUTHENTICATED = (16, 401)

    def __init__(self, number: int, http_status: int) -> None:
        self.number = number
        self.http_status = http_status

    @classmethod
    def of_number(cls, number: int) -> Code:
        """Returns the code with this canonical number; UNKNOWN if there is none."""
        return next((code for code in cls if code.number == number), cls.UNKNOWN)


class ServingError(Exception):
    """A request, a model or a configuration that the server refuses.

    Args:
        code: The kind of refusal.
        message: What was received and what was expected, for the client to read.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.message)


def invalid(message: str) -> ServingError:
    """An INVALID_ARGUMENT with this message."""
    return ServingError(Code.INVALID_ARGUMENT, message)


def from_tensorflow(error: tf.errors.OpError) -> ServingError:
    """Translates an error of TensorFlow's runtime.

    Args:
        error: What a Session raised.

    Returns:
        The error with TensorFlow's code, and its message without node names and stack traces.
    """
    return ServingError(Code.of_number(error.error_code), clean(error.message or type(error).__name__))


def clean(message: str) -> str:
    """Removes node names and stack traces from a message of TensorFlow's runtime; of several errors keeps the first."""
    if (several := FIRST_ROOT.match(message)) is not None:
        message = several[1]
    return WHERE_AFTER.sub("", WHERE_BEFORE.sub("", message)).strip()
