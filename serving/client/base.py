"""The interface that the clients of REST and gRPC share, and what does not depend on the protocol."""

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
from serving.client.answers import (
    Array,
    Classification,
    ClientError,
    Metadata,
    Prediction,
    Regression,
    Signature,
    VersionStatus,
)
from serving.client.arrays import Example
from serving.client.connection import Connection
from serving.errors import Code
from serving.protocol import DEFAULT_SIGNATURE

if TYPE_CHECKING:
    from typing_extensions import Self

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Model:
    """Which model a request is about.

    Attributes:
        name: Its name.
        version: Its version; None for the highest one, or for what the label names.
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
    """A request on its way.

    Attributes:
        request_id: Its id, the same for each attempt.
        end: When the caller gives up, on `time.monotonic`'s clock.
    """

    request_id: str
    end: float

    def seconds_left(self) -> float:
        """How long the server may take.

        Raises:
            ClientError: DEADLINE_EXCEEDED, the time is over.
        """
        left = self.end - time.monotonic()
        if left <= 0:
            raise ClientError(Code.DEADLINE_EXCEEDED, "no answer within the time given", self.request_id)
        return left


class Client(abc.ABC):
    """Asks a model server. Safe to use from several threads; its connections are kept open until `close`.

    A signature is looked up once for each model, version and label, and again after a request was refused.

    Args:
        connection: Token, certificates, deadline and retries.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[Model, Metadata] = {}
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
            inputs: Whole tensors by name, as arrays or nested lists; or the one tensor of a signature with one input.
            instances: Rows instead: mappings of input to value, or values where there is one input.
            signature: The signature's name.
            version: The version to ask; None for the highest one.
            label: The label of the version to ask, such as `stable`.
            timeout: Seconds for the whole call; None for the client's own.

        Raises:
            ClientError: The server refuses or is not reached, or what is given does not fit the signature.
        """
        if (inputs is None) == (instances is None):
            raise ClientError(Code.INVALID_ARGUMENT, "expected one of inputs and instances")
        which = Model(model, version, label)

        def send(call: Call) -> Prediction:
            chosen = self._signature(which, signature, call)
            return Prediction(self._predict(which, chosen, given(chosen), call), call.request_id)

        def given(chosen: Signature) -> dict[str, Array]:
            return arrays.input_arrays(chosen, inputs) if rows is None else arrays.instance_arrays(chosen, rows)

        rows = None if instances is None else list(instances)
        return self._call(send, timeout, which)

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
        """Gives each example its classes and scores.

        Args:
            model: The model's name.
            examples: For each example a mapping of feature to value or list of values. Text and bytes make a
                bytes_list, floats a float_list, integers and booleans an int64_list.
            signature: The signature's name; empty for the default one.
            version: The version to ask; None for the highest one.
            label: The label of the version to ask.
            timeout: Seconds for the whole call; None for the client's own.

        Raises:
            ClientError: The server refuses or is not reached.
        """
        which, rows = Model(model, version, label), arrays.example_features(examples)
        return self._call(
            lambda call: Classification(self._classify(which, signature, rows, call), call.request_id), timeout
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
        """Gives each example its value; arguments and errors are those of `classify`."""
        which, rows = Model(model, version, label), arrays.example_features(examples)
        return self._call(
            lambda call: Regression(self._regress(which, signature, rows, call), call.request_id), timeout
        )

    def status(self, model: str, *, version: int | None = None, timeout: float | None = None) -> list[VersionStatus]:
        """Says in which state the versions of a model are.

        Raises:
            ClientError: The server refuses or is not reached.
        """
        return self._call(lambda call: self._status(Model(model, version), call), timeout)

    def metadata(
        self, model: str, *, version: int | None = None, label: str | None = None, timeout: float | None = None
    ) -> Metadata:
        """Says which signatures a model has.

        Raises:
            ClientError: The server refuses or is not reached.
        """
        return self._call(lambda call: self._metadata(Model(model, version, label), call), timeout)

    def _call(self, send: Callable[[Call], Answer], timeout: float | None, model: Model | None = None) -> Answer:
        request_id = uuid.uuid4().hex
        seconds = self._connection.timeout if timeout is None else timeout
        try:
            call = Call(request_id, time.monotonic() + seconds)
            return self._connection.retries.call(lambda: send(call), seconds)
        except ClientError:
            # Another version may have come, with other signatures.
            if model is not None:
                with self._lock:
                    self._known.pop(model, None)
            raise

    def _signature(self, model: Model, name: str, call: Call) -> Signature:
        with self._lock:
            known = self._known.get(model)
        if known is None:
            known = self._metadata(model, call)
            with self._lock:
                self._known[model] = known
        if name not in known.signatures:
            raise ClientError(
                Code.INVALID_ARGUMENT, f"{model.name} has no signature {name!r}, only {', '.join(known.signatures)}"
            )
        return known.signatures[name]

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
