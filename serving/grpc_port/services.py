"""TensorFlow Serving's PredictionService and ModelService over gRPC: an event loop in a thread of its own.

As over REST, a small prediction by a model that is known to be quick runs on the event loop, everything else in a pool.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import uvloop
from google.protobuf.message import DecodeError

from serving import security
from serving.errors import Code, ServingError, invalid
from serving.grpc_port.methods import Method, Methods
from serving.models.configuration import answering_threads
from serving.models.signatures import QUICK_BYTES, NotQuickError
from serving.monitoring import Exchange, Metrics
from serving.protocol import AUTHORIZATION_HEADER, REQUEST_ID_HEADER
from serving.settings import ServerSettings

ENTRYPOINT = "GRPC"
MAX_DETAILS = 1024
# gRPC reports a call without a deadline as one in the far future.
NO_DEADLINE_SECONDS = 1e8
TOO_LATE = "the deadline passed before the request was looked at"
GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}

log = logging.getLogger(__name__)


class Call:
    """Answers the calls of one method: checks the token, enforces the deadline, counts, and writes the access log.

    Args:
        method: The method.
        metrics: Counts the calls.
        token: The bearer token that a call must send, or None.
        pool: Runs what is not quick.
    """

    def __init__(self, method: Method, metrics: Metrics, token: str | None, pool: ThreadPoolExecutor) -> None:
        self._method = method
        self._metrics = metrics
        self._token = token
        self._pool = pool

    async def answer(self, data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        """Answers a serialized request with a serialized response, or ends the call with an error's status."""
        headers = dict(context.invocation_metadata() or ())
        method, client_id = self._method, headers.get(REQUEST_ID_HEADER)
        with Exchange(self._metrics, ENTRYPOINT, client_id, method.api, method.counted) as exchange:
            context.set_trailing_metadata(((REQUEST_ID_HEADER, exchange.identity),))
            try:
                security.authorize(headers.get(AUTHORIZATION_HEADER), self._token)
                request = self._parse(data)
                exchange.model = method.model(request)
                return await self._answer(request, len(data), _deadline(context))
            except asyncio.CancelledError:
                # gRPC cancels a call at its deadline just as it does when the client leaves.
                remaining = context.time_remaining()
                code = Code.CANCELLED if remaining is None or remaining > 0 else Code.DEADLINE_EXCEEDED
                exchange.error = ServingError(code, "the client did not wait for the answer")
                raise
            except ServingError:
                raise
            except Exception as error:
                log.exception("Request %s failed", exchange.identity)
                message = f"internal error; the server's log says more about request {exchange.identity}"
                raise ServingError(Code.INTERNAL, message) from error
        refusal = exchange.error
        assert refusal is not None  # noqa: S101 - the block was left by a ServingError
        await context.abort(GRPC_CODES[refusal.code.number], details(refusal.message))
        return b""

    async def _answer(self, request: Any, size: int, deadline: float | None) -> bytes:
        if self._method.on_loop is not None and size <= QUICK_BYTES:
            try:
                return bytes(self._method.on_loop(request, deadline).SerializeToString())
            except NotQuickError:
                pass

        def answer_in_time() -> bytes:
            if deadline is not None and time.monotonic() >= deadline:
                raise ServingError(Code.DEADLINE_EXCEEDED, TOO_LATE)
            return bytes(self._method.answer(request, deadline).SerializeToString())

        return await asyncio.get_running_loop().run_in_executor(self._pool, answer_in_time)

    def _parse(self, data: bytes) -> Any:
        request, cause = self._method.request(), None
        try:
            # At the end of a group that never began, protobuf stops with only a warning.
            if request.ParseFromString(data) == len(data):
                return request
        except DecodeError as error:
            cause = error
        name = self._method.request.DESCRIPTOR.full_name
        raise invalid(f"the request is not a {name}") from cause


def details(message: str) -> str:
    """An error's message for a gRPC status: like TensorFlow Serving, cuts it at 1024 characters and says so."""
    return message if len(message) <= MAX_DETAILS else f"{message[:MAX_DETAILS]}...TRUNCATED"


def _deadline(context: grpc.aio.ServicerContext) -> float | None:
    """When the client gives up, on `time.monotonic`'s clock, or None."""
    remaining = context.time_remaining()
    if remaining is None or remaining > NO_DEADLINE_SECONDS:
        return None
    if remaining <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, TOO_LATE)
    return time.monotonic() + float(remaining)


class GrpcServer:
    """The gRPC port, and the UNIX socket.

    Args:
        settings: The server's settings.
        methods: The methods.
        metrics: Counts the calls.
        token: The bearer token that calls must send, or None.
        other_services: Further services, such as health, which need no token.
        credentials: TLS, or None.

    Raises:
        ServingError: INVALID_ARGUMENT, `grpc_channel_arguments` is invalid.
    """

    def __init__(
        self,
        settings: ServerSettings,
        methods: Methods,
        metrics: Metrics,
        token: str | None,
        other_services: Iterable[grpc.GenericRpcHandler] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._options = _options(settings)
        self._most_calls = settings.max_concurrent_requests
        self._credentials = credentials
        threads = settings.grpc_max_threads or answering_threads(settings)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="grpc")
        services = [
            grpc.method_handlers_generic_handler(
                service,
                {
                    method.api: grpc.unary_unary_rpc_method_handler(Call(method, metrics, token, self._pool).answer)
                    for method in group
                },
            )
            for service, group in methods.services().items()
        ]
        self._handlers = [*services, *other_services]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: grpc.aio.Server | None = None

    def start(self, addresses: Iterable[str]) -> list[int]:
        """Opens these addresses and returns their ports.

        Raises:
            ServingError: UNAVAILABLE, an address is taken.
        """
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="grpc", daemon=True)
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._open(list(addresses)), self._loop).result()

    def stop(self, patience: float) -> Callable[[], None]:
        """Stops taking calls; returns a function that waits for those in flight, at most `patience` seconds."""
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
        # The pool also runs the services that are not asynchronous.
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


def _options(settings: ServerSettings) -> list[tuple[str, int | str]]:
    """gRPC's own options; those in `grpc_channel_arguments` come last and take precedence."""
    options: dict[str, int | str] = {
        "grpc.max_receive_message_length": settings.max_request_bytes,
        "grpc.max_send_message_length": -1,
        # Two servers on one port would each get half of the requests, unnoticed.
        "grpc.so_reuseport": 0,
    }
    for argument in filter(None, settings.grpc_channel_arguments.split(",")):
        key, equals, value = argument.partition("=")
        if not (key and equals):
            raise invalid(f"received grpc_channel_arguments {argument!r}, expected key=value pairs separated by commas")
        options[key] = int(value) if value.lstrip("-").isdecimal() else value
    return list(options.items())
