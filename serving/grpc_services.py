"""TensorFlow Serving's PredictionService and ModelService over gRPC: an event loop in a thread of its own.

As over REST, a small prediction by a model that is known to be quick runs on the event loop, and all else in a pool.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from serving import access
from serving.errors import Code, ServingError
from serving.metrics import Metrics
from serving.pace import QUICK_BYTES, NotQuickError
from serving.proto_handlers import ProtoHandlers
from serving.settings import ServerSettings

PREDICTION_SERVICE = "tensorflow.serving.PredictionService"
MODEL_SERVICE = "tensorflow.serving.ModelService"
ENTRYPOINT = "GRPC"
MAX_DETAILS = 1024
THREADS_PER_CORE = 4
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
            error = ServingError(Code.CANCELLED, "the client did not wait for the answer")
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
        try:
            return self._method.request.FromString(data)
        except DecodeError as error:
            name = self._method.request.DESCRIPTOR.full_name
            raise ServingError(Code.INVALID_ARGUMENT, f"the request is not a {name}") from error

    def _record(self, request: Any, identity: str, error: ServingError | None, microseconds: float) -> None:
        model = "" if request is None else self._method.model(request)
        if self._method.counted:
            status = error.code if error else Code.OK
            self._metrics.request(model, self._method.api, ENTRYPOINT, status.name, microseconds)
        access.log_request(identity, ENTRYPOINT, self._method.api, model, microseconds / 1000, error)


def details(message: str) -> str:
    """An error's message as a gRPC status carries it: TensorFlow Serving cuts at 1024 characters, and says so."""
    return message if len(message) <= MAX_DETAILS else f"{message[:MAX_DETAILS]}...TRUNCATED"


class GrpcServer:
    """The gRPC port, and the UNIX socket.

    Args:
        settings: The server's settings.
        handlers: What the methods do.
        metrics: Where calls are counted.
        token: The bearer token that calls must bring, or None.
        others: Further services, such as health; these need no token.
        credentials: TLS, or None.

    Raises:
        ServingError: INVALID_ARGUMENT, `grpc_channel_arguments` do not fit.
    """

    def __init__(
        self,
        settings: ServerSettings,
        handlers: ProtoHandlers,
        metrics: Metrics,
        token: str | None,
        others: Iterable[grpc.GenericRpcHandler] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._options = _options(settings)
        self._most_calls = settings.max_concurrent_requests
        self._credentials = credentials
        threads = settings.grpc_max_threads or THREADS_PER_CORE * (os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="grpc")
        services = [
            grpc.method_handlers_generic_handler(
                service,
                {
                    method.api: grpc.unary_unary_rpc_method_handler(Call(method, metrics, token, self._pool).answer)
                    for method in methods
                },
            )
            for service, methods in _services(handlers).items()
        ]
        self._handlers = [*services, *others]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: grpc.aio.Server | None = None

    def start(self, addresses: Iterable[str]) -> list[int]:
        """Opens these addresses and returns their ports.

        Raises:
            ServingError: UNAVAILABLE, one is taken.
        """
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="grpc", daemon=True)
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._open(list(addresses)), self._loop).result()

    def stop(self, patience: float) -> Callable[[], None]:
        """Takes no more calls; returns what waits for those in flight, for `patience` seconds at most."""
        loop = self._loop
        if loop is None:
            return self._pool.shutdown
        stopping = asyncio.run_coroutine_threadsafe(self._close(patience), loop)

        def wait() -> None:
            stopping.result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

        return wait

    async def _open(self, addresses: list[str]) -> list[int]:
        # The pool also runs the services that know nothing of event loops.
        self._server = grpc.aio.server(
            self._pool, self._handlers, options=self._options, maximum_concurrent_rpcs=self._most_calls
        )
        ports = [self._bind(self._server, address) for address in addresses]
        await self._server.start()
        return ports

    async def _close(self, patience: float) -> None:
        if self._server is not None:
            await self._server.stop(patience)

    def _bind(self, server: grpc.aio.Server, address: str) -> int:
        try:
            if self._credentials is None:
                return int(server.add_insecure_port(address))
            return int(server.add_secure_port(address, self._credentials))
        except RuntimeError as error:
            raise ServingError(Code.UNAVAILABLE, f"gRPC cannot listen on {address}: is it taken?") from error


def _services(handlers: ProtoHandlers) -> dict[str, list[Method]]:
    return {
        PREDICTION_SERVICE: [
            Method("Predict", PredictRequest, handlers.predict, quickly=handlers.predict_quickly),
            Method("Classify", ClassificationRequest, handlers.classify),
            Method("Regress", RegressionRequest, handlers.regress),
            Method("MultiInference", MultiInferenceRequest, handlers.multi_inference, _first_model),
            Method("GetModelMetadata", GetModelMetadataRequest, handlers.model_metadata, counted=False),
        ],
        MODEL_SERVICE: [
            Method("GetModelStatus", GetModelStatusRequest, handlers.model_status, counted=False),
            Method("HandleReloadConfigRequest", ReloadConfigRequest, handlers.reload_config, lambda _: "", False),
        ],
    }


def _first_model(request: MultiInferenceRequest) -> str:
    return str(request.tasks[0].model_spec.name) if request.tasks else ""


def _options(settings: ServerSettings) -> list[tuple[str, int | str]]:
    """gRPC's own options; those of `grpc_channel_arguments` come last and win."""
    options: dict[str, int | str] = {
        "grpc.max_receive_message_length": settings.max_request_bytes,
        "grpc.max_send_message_length": -1,
        # Two servers on one port would each get half of the requests, and nobody would notice.
        "grpc.so_reuseport": 0,
    }
    for argument in filter(None, settings.grpc_channel_arguments.split(",")):
        key, equals, value = argument.partition("=")
        if not (key and equals):
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"received grpc_channel_arguments {argument!r}, expected key=value pairs separated by commas",
            )
        options[key] = int(value) if value.lstrip("-").isdecimal() else value
    return list(options.items())


def _seconds_left(context: grpc.aio.ServicerContext) -> float | None:
    left = context.time_remaining()
    if left is None or left > NO_DEADLINE_SECONDS:
        return None
    if left <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, TOO_LATE)
    return float(left)
