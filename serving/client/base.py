"""The interface that the REST and gRPC clients share, and the parts that do not depend on the protocol."""

from __future__ import annotations

import abc
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from serving.client import arrays
from serving.client.arrays import Example
from serving.client.connection import Connection
from serving.client.results import (
    Array,
    Classification,
    ClientError,
    Metadata,
    Prediction,
    Regression,
    Signature,
    VersionStatus,
)
from serving.errors import Code
from serving.protocol import DEFAULT_SIGNATURE

if TYPE_CHECKING:
    from typing_extensions import Self

Result = TypeVar("Result")


@dataclass(frozen=True)
class Model:
    """The model that a request is for.

    Attributes:
        name: Its name.
        version: Its version; None for the highest one, or for the one with the label.
        label: The version's label, or None.
    """

    name: str
    version: int | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.version is not None and self.label is not None:
            raise ClientError(Code.INVALID_ARGUMENT, "received version and label, expected one of them")


@dataclass(frozen=True)
class Call:
    """A request in progress.

    Attributes:
        request_id: Its id, the same for each attempt.
        deadline: When the caller gives up, on `time.monotonic`'s clock.
    """

    request_id: str
    deadline: float

    def seconds_left(self) -> float:
        """How long the server may take.

        Raises:
            ClientError: DEADLINE_EXCEEDED, the deadline has passed.
        """
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise ClientError(Code.DEADLINE_EXCEEDED, "no answer within the time given", self.request_id)
        return remaining


class Client(abc.ABC):
    """Sends requests to a model server. Safe to use from several threads; connections stay open until `close`.

    A signature is looked up once for each model, version and label, and again after a request has been refused.

    Args:
        connection: Token, certificates, deadline and retries.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._metadata_by_model: dict[Model, Metadata] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the connections."""

    def predict(
        self,
        model: str,
        inputs: Mapping[str, Any] | Any = None,
        *,
        instances: Iterable[Mapping[str, Any] | Any] | None = None,
        signature: str = DEFAULT_SIGNATURE,
        version: int | None = None,
        label: str | None = None,
        timeout: float | None = None,
    ) -> Prediction:
        """Computes the outputs of a signature.

        Args:
            model: The model's name.
            inputs: Whole tensors by name, as arrays or nested lists; or the bare tensor for a signature with one input.
            instances: Rows instead: mappings of input to value, or bare values if there is one input.
            signature: The signature's name.
            version: The version to use; None for the highest one.
            label: The label of the version to use, such as `stable`.
            timeout: Seconds for the whole call; None for the client's default.

        Raises:
            ClientError: The server refuses or cannot be reached, or the values do not fit the signature.
        """
        if (inputs is None) == (instances is None):
            raise ClientError(Code.INVALID_ARGUMENT, "expected one of inputs and instances")
        target = Model(model, version, label)

        def send(call: Call) -> Prediction:
            chosen = self._signature(target, signature, call)
            return Prediction(self._predict(target, chosen, to_arrays(chosen), call), call.request_id)

        def to_arrays(chosen: Signature) -> dict[str, Array]:
            return arrays.input_arrays(chosen, inputs) if rows is None else arrays.instance_arrays(chosen, rows)

        rows = None if instances is None else list(instances)
        return self._call(send, timeout, target)

    def classify(
        self,
        model: str,
        examples: Iterable[Example],
        *,
        signature: str = "",
        version: int | None = None,
        label: str | None = None,
        timeout: float | None = None,
    ) -> Classification:
        """Computes classes and scores for each example.

        Args:
            model: The model's name.
            examples: For each example a mapping of feature to value or list of values. Text and bytes become a
                bytes_list, floats a float_list, integers and booleans an int64_list.
            signature: The signature's name; empty for the default one.
            version: The version to use; None for the highest one.
            label: The label of the version to use.
            timeout: Seconds for the whole call; None for the client's default.

        Raises:
            ClientError: The server refuses or cannot be reached.
        """
        target, rows = Model(model, version, label), arrays.example_features(examples)
        return self._call(
            lambda call: Classification(self._classify(target, signature, rows, call), call.request_id), timeout
        )

    def regress(
        self,
        model: str,
        examples: Iterable[Example],
        *,
        signature: str = "",
        version: int | None = None,
        label: str | None = None,
        timeout: float | None = None,
    ) -> Regression:
        """Computes the value of each example; arguments and errors are those of `classify`."""
        target, rows = Model(model, version, label), arrays.example_features(examples)
        return self._call(
            lambda call: Regression(self._regress(target, signature, rows, call), call.request_id), timeout
        )

    def status(self, model: str, *, version: int | None = None, timeout: float | None = None) -> list[VersionStatus]:
        """Returns the states of a model's versions.

        Raises:
            ClientError: The server refuses or cannot be reached.
        """
        return self._call(lambda call: self._status(Model(model, version), call), timeout)

    def metadata(
        self, model: str, *, version: int | None = None, label: str | None = None, timeout: float | None = None
    ) -> Metadata:
        """Returns the signatures of a model.

        Raises:
            ClientError: The server refuses or cannot be reached.
        """
        return self._call(lambda call: self._metadata(Model(model, version, label), call), timeout)

    def _call(self, send: Callable[[Call], Result], timeout: float | None, model: Model | None = None) -> Result:
        request_id = uuid.uuid4().hex
        seconds = self._connection.timeout if timeout is None else timeout
        try:
            call = Call(request_id, time.monotonic() + seconds)
            return self._connection.retries.call(lambda: send(call), seconds)
        except ClientError:
            # A new version may be served, with other signatures.
            if model is not None:
                with self._lock:
                    self._metadata_by_model.pop(model, None)
            raise

    def _signature(self, model: Model, name: str, call: Call) -> Signature:
        with self._lock:
            metadata = self._metadata_by_model.get(model)
        if metadata is None:
            metadata = self._metadata(model, call)
            with self._lock:
                self._metadata_by_model[model] = metadata
        if name not in metadata.signatures:
            raise ClientError(
                Code.INVALID_ARGUMENT, f"{model.name} has no signature {name!r}, only {', '.join(metadata.signatures)}"
            )
        return metadata.signatures[name]

    @abc.abstractmethod
    def _predict(
        self, model: Model, signature: Signature, inputs: Mapping[str, Array], call: Call
    ) -> dict[str, Array]: ...

    @abc.abstractmethod
    def _classify(
        self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call
    ) -> list[list[tuple[str, float]]]: ...

    @abc.abstractmethod
    def _regress(self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call) -> Array: ...

    @abc.abstractmethod
    def _status(self, model: Model, call: Call) -> list[VersionStatus]: ...

    @abc.abstractmethod
    def _metadata(self, model: Model, call: Call) -> Metadata: ...
