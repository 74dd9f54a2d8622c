"""REST over HTTP/1.1: an event loop in a thread of its own that reads, guards and sends; `api` computes the responses.

A small prediction by a model that always answers in less than a millisecond runs on the event loop, since handing it to
a thread would take longer (`signatures.Pace`); everything else runs in a pool, where it holds up nobody. With batching
everything does: on the loop, requests would wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import uvloop
from aiohttp import web

from serving import security
from serving.errors import Code, ServingError, invalid
from serving.models.configuration import answering_threads
from serving.models.signatures import QUICK_BYTES, NotQuickError
from serving.monitoring import Exchange, Metrics
from serving.protocol import AUTHORIZATION_HEADER, REQUEST_ID_HEADER
from serving.rest import api
from serving.rest.api import Response, RestApi, refusal
from serving.settings import ServerSettings

ENTRY_POINT = "REST"
ALIVE, READY = "/livez", "/readyz"
ORIGIN = re.compile("https?://")
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}
NOT_FOUND = "<HTML><HEAD>\n<TITLE>404 Not Found</TITLE>\n</HEAD><BODY>\n<H1>Not Found</H1>\n</BODY></HTML>\n"
GZIP = 31
# TensorFlow's own message about an exceeded deadline says more, and comes a little later.
GRACE_SECONDS = 0.1
MAX_PATHS = 1000
log = logging.getLogger(__name__)


class BodyTooLargeError(ServingError):
    """A body that is larger than the server accepts.

    Args:
        size: How large it is, in words.
        limit: How many bytes the server accepts.
    """

    def __init__(self, size: str, limit: int) -> None:
        super().__init__(Code.RESOURCE_EXHAUSTED, f"received a body of {size}, expected at most {limit}")


class RestServer:
    """The REST port.

    Args:
        settings: The server's settings.
        api: Answers requests below `/v1/`.
        metrics: Counts the requests.
        ready: Returns whether the server is ready to predict.
        token: What clients must send as `Authorization: Bearer …`, or None.
        metrics_path: The path of the metrics, or None.
        context: TLS, or None for plain HTTP.
    """

    def __init__(
        self,
        settings: ServerSettings,
        api: RestApi,
        metrics: Metrics,
        ready: Callable[[], bool],
        token: str | None = None,
        metrics_path: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._api = api
        self._metrics = metrics
        self._ready = ready
        self._token = token
        self._metrics_path = metrics_path
        self._context = context
        self._quick_paths: set[str] = set()
        self._in_pool = 0
        self._pool = ThreadPoolExecutor(answering_threads(settings), thread_name_prefix="rest")
        self._loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rest", daemon=True)
        self._runner: web.ServerRunner | None = None

    def start(self) -> int:
        """Opens the port and returns its number.

        Raises:
            ServingError: UNAVAILABLE, the port is taken.
        """
        self._thread.start()
        host, port = self._settings.host, self._settings.rest_api_port
        try:
            return asyncio.run_coroutine_threadsafe(self._open(host, port), self._loop).result()
        except OSError as error:
            self.stop()
            raise ServingError(
                Code.UNAVAILABLE, f"REST cannot listen on {host}:{port}: {error.strerror}: is it taken?"
            ) from error

    def stop(self) -> None:
        """Stops taking requests; returns once those in flight are answered, or after `drain_timeout_seconds`."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _open(self, host: str, port: int) -> int:
        # We decompress bodies ourselves, since their size has to be bounded.
        server = web.Server(self._handle, auto_decompress=False, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=self._settings.drain_timeout_seconds)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=self._context).start()
        return int(self._runner.addresses[0][1])

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if not path.lower().startswith("/v1/"):
            return self._outside_api(request, path)
        status: int | None = None
        with Exchange(self._metrics, ENTRY_POINT, request.headers.get(REQUEST_ID_HEADER)) as exchange:
            try:
                # A browser's preflight request sends no token: it asks whether it may send one.
                if request.method != "OPTIONS":
                    security.authorize(request.headers.get(AUTHORIZATION_HEADER), self._token)
                response = await self._respond(request, path)
            except BodyTooLargeError as error:
                response, status = refusal(error), 413
            except ServingError as error:
                response = refusal(error)
            exchange.model, exchange.api, exchange.error = response.model, response.api, response.error
        return self._web_response(response, exchange.identity, status)

    def _outside_api(self, request: web.BaseRequest, path: str) -> web.Response:
        if path == ALIVE:
            return web.Response(text="ok\n")
        if path == READY:
            ready = self._ready()
            return web.Response(text="ok\n" if ready else "not ready\n", status=200 if ready else 503)
        if path == self._metrics_path:
            try:
                security.authorize(request.headers.get(AUTHORIZATION_HEADER), self._token)
            except ServingError as error:
                return web.Response(text=error.message + "\n", status=error.code.http_status)
            return web.Response(text=self._metrics.page())
        return web.Response(text=NOT_FOUND, status=404, content_type="text/html")

    def _web_response(self, response: Response, identity: str, status: int | None) -> web.Response:
        headers = {REQUEST_ID_HEADER: identity}
        if response.body:
            headers["Content-Type"] = api.JSON
        if self._settings.rest_api_enable_cors_support:
            headers.update(CORS_HEADERS)
            if self._token:
                headers["Access-Control-Allow-Headers"] += ", Authorization"
        if response.code is Code.UNAUTHENTICATED:
            headers["WWW-Authenticate"] = "Bearer"
        return web.Response(body=response.body, status=status or response.code.http_status, headers=headers)

    async def _respond(self, request: web.BaseRequest, path: str) -> Response:
        deadline = time.monotonic() + self._settings.rest_api_timeout_in_ms / 1000
        if request.method == "OPTIONS":
            has_origin = ORIGIN.search(request.headers.get("Origin", ""))
            message = "" if has_origin else "Origin header is missing in CORS preflight"
            return Response(Code.OK if has_origin else Code.FAILED_PRECONDITION, b"", message=message)
        body = await self._body(request, deadline)
        if path in self._quick_paths and len(body) <= QUICK_BYTES:
            try:
                return self._api.answer(request.method, path, body, deadline, on_loop=True)
            except NotQuickError:
                self._quick_paths.discard(path)
        response = await self._in_thread(request.method, path, body, deadline)
        if response.quick and len(body) <= QUICK_BYTES and len(self._quick_paths) < MAX_PATHS:
            self._quick_paths.add(path)
        return response

    async def _in_thread(self, method: str, path: str, body: bytes, deadline: float) -> Response:
        if self._in_pool >= self._settings.max_concurrent_requests:
            raise ServingError(Code.UNAVAILABLE, "The server has too many requests waiting; try again later.")
        self._in_pool += 1
        waiting: asyncio.Future[Response] = self._loop.create_future()
        # A request in a batch cannot be cancelled: its thread goes on waiting, its client does not.
        timer = self._loop.call_later(deadline - time.monotonic() + GRACE_SECONDS, _give_up, waiting)
        work = self._pool.submit(self._api.answer, method, path, body, deadline)
        work.add_done_callback(lambda future: self._loop.call_soon_threadsafe(self._finish, waiting, future))
        try:
            return await waiting
        finally:
            timer.cancel()

    def _finish(self, waiting: asyncio.Future[Response], work: Future[Response]) -> None:
        self._in_pool -= 1
        if waiting.done():
            return
        if (error := work.exception()) is not None:
            waiting.set_exception(error)
        else:
            waiting.set_result(work.result())

    async def _body(self, request: web.BaseRequest, deadline: float) -> bytes:
        if not request.body_exists:
            return b""
        limit = self._settings.max_request_bytes
        if (request.content_length or 0) > limit:
            raise BodyTooLargeError(f"{request.content_length} bytes", limit)
        if request.content.is_eof() and request.content_length is not None:
            body = request.content.read_nowait()
        else:
            try:
                body = await asyncio.wait_for(_read_body(request, limit), deadline - time.monotonic())
            except asyncio.TimeoutError as error:
                raise ServingError(Code.DEADLINE_EXCEEDED, "The request's body did not arrive in time.") from error
        if "gzip" in request.headers.get("Content-Encoding", "").lower():
            return await self._loop.run_in_executor(self._pool, _inflate, body, limit)
        return body


async def _read_body(request: web.BaseRequest, limit: int) -> bytes:
    parts, size = [], 0
    async for part in request.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyTooLargeError(f"more than {limit} bytes", limit)
    return b"".join(parts)


def _inflate(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(GZIP)
    try:
        inflated = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise invalid(f"The body is not gzip: {error}") from error
    if len(inflated) > limit:
        raise BodyTooLargeError(f"more than {limit} bytes when inflated", limit)
    if not inflater.eof:
        raise invalid("The body is not gzip: it ends too early")
    if inflater.unused_data:
        raise invalid("The body is not gzip: more follows after its end")
    return inflated


def _give_up(waiting: asyncio.Future[Response]) -> None:
    if not waiting.done():
        waiting.set_exception(ServingError(Code.DEADLINE_EXCEEDED, "The request waited longer than its deadline."))
