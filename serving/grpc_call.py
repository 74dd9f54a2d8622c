"""One call over gRPC: token, deadline, metrics, access log, and where it runs.

As over REST, a small prediction by a model that is known to be quick runs on the event loop, and all else in a pool.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from serving import access
from serving.errors import Code, ServingError
from serving.metrics import Metrics
from serving.pace import QUICK_BYTES, NotQuickError

ENTRYPOINT = "GRPC"
MAX_DETAILS = 1024
# A call without a deadline reads as one in the far future.
NO_DEADLINE_SECONDS = 1e8
TOO_LATE = "the deadline passed before the request was looked at"
GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Method:
    """One method of a service.

    Attributes:
        api: Its name, such as `Predict`.
        request: The class of its request.
        answer: Answers a request, given the seconds until the client gives up (or None).
        model: Says which model a request is about.
        counted: Whether TensorFlow Serving's metrics count it.
        quickly: Like `answer`, but raises NotQuickError where that would take long.
    """

    api: str
    request: Any
    answer: Callable[[Any, float | None], Any]
    model: Callable[[Any], str] = lambda request: str(request.model_spec.name)
    counted: bool = True
    quickly: Callable[[Any, float | None], Any] | None = None


class Call:
    """Answers the calls of one method: checks the token, keeps the deadline, counts, and writes the access log.

    Args:
        method: The method.
        metrics: Where calls are counted.
        token: The bearer token that a call must bring, or None.
        pool: Runs what is not quick.
    """

    def __init__(self, method: Method, metrics: Metrics, token: str | None, pool: ThreadPoolExecutor) -> None:
        self._method = method
        self._metrics = metrics
        self._token = token
        self._pool = pool

    async def answer(self, data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        """Answers a serialized request with a serialized response, or ends the call with an error's status."""
        started = time.perf_counter_ns()
        headers = dict(context.invocation_metadata() or ())
        identity = access.request_id(headers.get(access.REQUEST_ID_HEADER))
        context.set_trailing_metadata(((access.REQUEST_ID_HEADER, identity),))
        self._metrics.in_flight.add((ENTRYPOINT,))
        request, response, error = None, b"", None
        try:
            access.authorize(headers.get(access.AUTHORIZATION_HEADER), self._token)
            request = self._parse(data)
            response = await self._answer(request, len(data), _seconds_left(context))
        except ServingError as refusal:
            error = refusal
        except asyncio.CancelledError:
            # gRPC takes a call away at its deadline as it does when the client leaves.
            left = context.time_remaining()
            code = Code.CANCELLED if left is None or left > 0 else Code.DEADLINE_EXCEEDED
            error = ServingError(code, "the client did not wait for the answer")
            raise
        except Exception:
            log.exception("Request %s failed", identity)
            error = ServingError(Code.INTERNAL, f"internal error; the server's log says more of request {identity}")
        finally:
            self._metrics.in_flight.add((ENTRYPOINT,), -1)
            self._record(request, identity, error, (time.perf_counter_ns() - started) / 1000)
        if error:
            await context.abort(GRPC_CODES[error.code.number], details(error.message))
        return response

    async def _answer(self, request: Any, size: int, seconds: float | None) -> bytes:
        if self._method.quickly is not None and size <= QUICK_BYTES:
            try:
                return bytes(self._method.quickly(request, seconds).SerializeToString())
            except NotQuickError:
                pass
        deadline = None if seconds is None else time.monotonic() + seconds

        def answer() -> bytes:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ServingError(Code.DEADLINE_EXCEEDED, TOO_LATE)
            return bytes(self._method.answer(request, left).SerializeToString())

        return await asyncio.get_running_loop().run_in_executor(self._pool, answer)

    def _parse(self, data: bytes) -> Any:
        request, cause = self._method.request(), None
        try:
            # At an end of a group that never began, protobuf stops and only warns.
            if request.ParseFromString(data) == len(data):
                return request
        except DecodeError as error:
            cause = error
        name = self._method.request.DESCRIPTOR.full_name
        raise ServingError(Code.INVALID_ARGUMENT, f"the request is not a {name}") from cause

    def _record(self, request: Any, identity: str, error: ServingError | None, microseconds: float) -> None:
        model = "" if request is None else self._method.model(request)
        if self._method.counted:
            status = error.code if error else Code.OK
            self._metrics.request(model, self._method.api, ENTRYPOINT, status.name, microseconds)
        access.log_request(identity, ENTRYPOINT, self._method.api, model, microseconds / 1000, error)


def details(message: str) -> str:
    """An error's message as a gRPC status carries it: TensorFlow Serving cuts at 1024 characters, and says so."""
    return message if len(message) <= MAX_DETAILS else f"{message[:MAX_DETAILS]}...TRUNCATED"


def _seconds_left(context: grpc.aio.ServicerContext) -> float | None:
    left = context.time_remaining()
    if left is None or left > NO_DEADLINE_SECONDS:
        return None
    if left <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, TOO_LATE)
    return float(left)
