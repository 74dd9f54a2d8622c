"""What the clients return and raise: predictions, signatures, version states, and the one error."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from serving import protocol
from serving.errors import Code, ServingError

Array = np.ndarray[Any, Any]

# TensorFlow's types as named in metadata -> NumPy's names for them.
DTYPES = {
    "DT_FLOAT": "float32",
    "DT_DOUBLE": "float64",
    "DT_HALF": "float16",
    "DT_BFLOAT16": "bfloat16",
    "DT_INT8": "int8",
    "DT_INT16": "int16",
    "DT_INT32": "int32",
    "DT_INT64": "int64",
    "DT_UINT8": "uint8",
    "DT_UINT16": "uint16",
    "DT_UINT32": "uint32",
    "DT_UINT64": "uint64",
    "DT_BOOL": "bool",
    "DT_STRING": "string",
    "DT_COMPLEX64": "complex64",
    "DT_COMPLEX128": "complex128",
}


class ClientError(ServingError):
    """A request that was refused, or that never reached a server.

    Args:
        code: The kind of refusal, the same over REST and gRPC.
        message: The server's message, or why it could not be reached.
        request_id: The request's id, which is also in the server's access log.
        retry_after: Seconds that the server asked to wait, or None.
        unreachable: Whether no server could be reached.
        retryable: Whether the same request may succeed later.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        request_id: str = "",
        *,
        retry_after: float | None = None,
        unreachable: bool = False,
        retryable: bool = False,
    ) -> None:
        super().__init__(code, message)
        self.request_id = request_id
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.retryable = retryable

    def __str__(self) -> str:
        end = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code.name}: {self.message}{end}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (
            self.code,
            self.message,
            self.request_id,
            self.retry_after,
            self.unreachable,
            self.retryable,
        )


def _rebuilt(
    code: Code, message: str, request_id: str, retry_after: float | None, unreachable: bool, retryable: bool
) -> ClientError:
    return ClientError(code, message, request_id, retry_after=retry_after, unreachable=unreachable, retryable=retryable)


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A signature's description of one input or output.

    Attributes:
        dtype: Its type under NumPy's name, such as `float32`; `string` for text and bytes.
        shape: Its dimensions, each None if unknown; None as a whole if even their number is unknown.
    """

    dtype: str
    shape: tuple[int | None, ...] | None


Signature = protocol.Signature[TensorSpec]


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What a version of a model can compute.

    Attributes:
        model: The model's name.
        version: The version that answered.
        signatures: Its signatures by name.
    """

    model: str
    version: int
    signatures: Mapping[str, Signature]


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """The state of one version.

    Attributes:
        version: The version.
        state: `START`, `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        code: OK, or the code of its failure.
        message: Why it failed; empty if it did not.
    """

    version: int
    state: str
    code: Code
    message: str


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The result of `predict`.

    Attributes:
        outputs: An array for each output, of the signature's type; strings as `bytes` objects.
        request_id: The request's id.
    """

    outputs: Mapping[str, Array]
    request_id: str

    def rows(self) -> Iterator[dict[str, Any]]:
        """The outputs row by row as plain Python values; strings as `str` if they are UTF-8, else as `bytes`."""
        columns = [_plain(array) for array in self.outputs.values()]
        for values in zip(*columns, strict=True):
            yield dict(zip(self.outputs, values, strict=True))


@dataclasses.dataclass(frozen=True)
class Classification:
    """The result of `classify`.

    Attributes:
        classes: For each example, its classes as (label, score) in the server's order.
        request_id: The request's id.
    """

    classes: list[list[tuple[str, float]]]
    request_id: str


@dataclasses.dataclass(frozen=True)
class Regression:
    """The result of `regress`.

    Attributes:
        values: float32 [examples].
        request_id: The request's id.
    """

    values: Array
    request_id: str


def _plain(array: Array) -> list[Any]:
    if array.dtype.kind == "O":
        return [_text(value) for value in array.tolist()]
    if array.dtype.kind == "f" and array.dtype.itemsize < np.dtype(float).itemsize:
        # 0.1 rather than 0.10000000149011612: the shortest decimal that is the same number in the array's own type.
        array = array.astype(str).astype(np.float64)
    plain: list[Any] = array.tolist()
    return plain


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(entry) for entry in value]
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
