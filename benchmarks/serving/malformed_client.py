"""Sends malformed requests to a server over real sockets, and records the responses that are the server's fault."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import Counter
from random import Random

import grpc

from benchmarks.serving import malformed_http, malformed_protos
from benchmarks.serving.malformed_http import HttpRequest

HOST = "127.0.0.1"
PATIENCE_SECONDS = 600.0
# A request that breaks HTTP's framing may rightly be left waiting for more bytes.
SHORT_SECONDS = 0.05
SHARE_OF_FRAMES = 0.02
SHOWN_BYTES = 600
STATUS_LINE = re.compile(rb"HTTP/\d\.\d (\d{3}) ")
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")
# What a client may ask for that no server need offer: a type that JSON cannot represent, a version of HTTP.
CLIENTS_FAULTS = frozenset({501, 505})
SERVERS_FAULTS = frozenset(
    {
        *(grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS),
        *(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED),
    }
)
TRACES = (b"Traceback (most", b'File "/', b"site-packages")


@dataclasses.dataclass
class Tally:
    """Counts of the server's responses.

    Attributes:
        statuses: How often each status was received, such as `REST 400` or `gRPC OK`.
        faults: What was sent and received, for responses that are the server's fault.
    """

    statuses: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: list[str] = dataclasses.field(default_factory=list)

    def count(self, status: str, sent: bytes, fault: str = "") -> None:
        """Counts a response; `fault` says why the server should not have sent it."""
        self.statuses[status] += 1
        if fault:
            self.faults.append(f"{status}: {fault}\n    sent {sent[:SHOWN_BYTES]!r}")


async def send(port: int, rest_port: int, requests: int, seed: str, tally: Tally) -> None:
    """Sends requests one after another, half of them to each port.

    Args:
        port: gRPC's port.
        rest_port: REST's port.
        requests: How many requests.
        seed: Determines the requests; equal seeds give equal requests.
        tally: Counts the responses.
    """
    random = Random(seed)  # noqa: S311 - nothing secret
    channel = grpc.aio.insecure_channel(f"{HOST}:{port}")
    async with channel, Connection(rest_port) as connection:
        for _ in range(requests):
            kind = random.random()
            if kind < SHARE_OF_FRAMES:
                await _send_frames(port, malformed_protos.frames(random), tally)
            elif kind < 0.5:
                await _call(channel, *malformed_protos.grpc_request(random), tally)
            else:
                await connection.send(malformed_http.http_request(random), tally)


class Connection:
    """A connection to the REST port, opened anew whenever the last request broke it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Connection:
        """Opens nothing yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connection if it is open."""
        await self.close()

    async def send(self, request: HttpRequest, tally: Tally) -> None:
        """Sends a request and reads the response."""
        try:
            if self._writer is None or self._reader is None:
                self._reader, self._writer = await asyncio.open_connection(HOST, self._port)
            self._writer.write(request.data)
            patience = PATIENCE_SECONDS if request.complete else SHORT_SECONDS
            response = await asyncio.wait_for(_read_response(self._reader, request), patience)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            response = b""
            if request.complete:
                tally.count("REST none", request.data, repr(error))
            else:
                tally.count("REST none", request.data)
        else:
            _judge(request, response, tally)
        if not request.complete or not response or b"\r\nConnection: close" in response:
            await self.close()

    async def close(self) -> None:
        """Closes the connection if it is open."""
        if self._writer is not None:
            self._writer.close()
            await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        self._reader = self._writer = None


def _judge(request: HttpRequest, response: bytes, tally: Tally) -> None:
    matched = STATUS_LINE.match(response)
    status = int(matched[1]) if matched else 0
    fault = ""
    if not matched:
        fault = f"no HTTP answer: {response[:SHOWN_BYTES]!r}" if response or request.complete else ""
    elif (status >= 500 and status not in CLIENTS_FAULTS) or any(trace in response for trace in TRACES):
        fault = repr(response[:SHOWN_BYTES])
    tally.count(f"REST {status or 'none'}", request.data, fault)


async def _read_response(reader: asyncio.StreamReader, request: HttpRequest) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length and not request.data.startswith(b"HEAD") else b""
    return head + body


async def _call(channel: grpc.aio.Channel, method: str, data: bytes, tally: Tally) -> None:
    try:
        await channel.unary_unary(method)(data, timeout=PATIENCE_SECONDS)
        tally.count("gRPC OK", data)
    except grpc.aio.AioRpcError as error:
        text = f"{error.code().name} {error.details()}"
        is_fault = error.code() in SERVERS_FAULTS or any(trace in text.encode() for trace in TRACES)
        tally.count(f"gRPC {error.code().name}", data, f"{method} {text}" if is_fault else "")


async def _send_frames(port: int, data: bytes, tally: Tally) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(data)
        await asyncio.wait_for(reader.read(), SHORT_SECONDS)
        tally.count("frames closed", data)
    except (OSError, asyncio.TimeoutError):
        tally.count("frames waited for", data)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
