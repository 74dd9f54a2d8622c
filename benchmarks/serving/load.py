"""Clients, all in one process. They share the processor with the server, so they do as little as they can.

Requests are bytes prepared beforehand, and one thread watches all connections. Responses are only checked for success.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

HOST = "127.0.0.1"
ANSWER_BYTES = 1 << 16

OK = b"HTTP/1.1 200"

# HTTP/2, RFC 9113: frame types and flags.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
FRAME_HEAD = 9
WINDOW, LARGE_WINDOW = 65_535, 1 << 30
# The prefix of a gRPC message: whether it is compressed, and its length.
MESSAGE_HEAD = 5


class Connection(Protocol):
    """One client's connection.

    Attributes:
        socket: The socket to wait for.
    """

    socket: socket.socket

    def send(self) -> None:
        """Sends the request."""

    def receive(self) -> bool | None:
        """Reads what has arrived; returns whether the response is a success, or None if it is not complete yet."""


class Rest:
    """HTTP/1.1 with keep-alive; a success has the status 200.

    Args:
        port: The server's port.
        path: The URL's path.
        body: The request's body, JSON.
    """

    def __init__(self, port: int, path: str, body: str) -> None:
        data = body.encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        self._request = f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
        self.socket = _connected(port)

    def send(self) -> None:
        """See `Connection`."""
        self.socket.sendall(self._request)

    def receive(self) -> bool | None:
        """See `Connection`; a response of one row arrives in one piece."""
        return self.socket.recv(ANSWER_BYTES).startswith(OK)


class Grpc:
    """gRPC over HTTP/2 without TLS, one call at a time; a success has a message.

    A Python channel takes as long for a call as the server does, and on two cores takes that time from the server.

    Args:
        port: The server's port.
        method: `/package.Service/Method`.
        message: The serialized request.
    """

    def __init__(self, port: int, method: str, message: bytes) -> None:
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": method,
            ":authority": HOST,
            "te": "trailers",
            "content-type": "application/grpc",
        }
        self._headers = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
        self._message = b"\0" + struct.pack(">I", len(message)) + message
        self._stream = -1
        self._read = b""
        self._answered = False
        self._window = WINDOW
        self.socket = _connected(port)
        self.socket.sendall(
            PREFACE + _frame(SETTINGS, 0, 0, b"") + _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGE_WINDOW))
        )

    def send(self) -> None:
        """See `Connection`.

        Raises:
            RuntimeError: The server has not yet read the earlier requests.
        """
        self._window -= len(self._message)
        if self._window < 0:
            raise RuntimeError("received no window update in time")
        self._stream += 2
        self._answered = False
        self.socket.sendall(
            _frame(HEADERS, END_HEADERS, self._stream, self._headers)
            + _frame(DATA, END_STREAM, self._stream, self._message)
        )

    def receive(self) -> bool | None:
        """See `Connection`."""
        self._read += self.socket.recv(ANSWER_BYTES)
        result: bool | None = None
        while len(self._read) >= FRAME_HEAD:
            end = FRAME_HEAD + int.from_bytes(self._read[:3], "big")
            if len(self._read) < end:
                break
            kind, flags, stream = self._read[3], self._read[4], self._read[5:FRAME_HEAD]
            payload, self._read = self._read[FRAME_HEAD:end], self._read[end:]
            if kind in (RESET, GOAWAY):
                result = False
            elif kind == DATA:
                self._answered = self._answered or len(payload) > MESSAGE_HEAD
            elif kind == HEADERS and flags & END_STREAM:
                result = self._answered
            elif kind == WINDOW_UPDATE and not any(stream):
                self._window += int.from_bytes(payload, "big")
            elif kind in (SETTINGS, PING) and not flags & ACK:
                self.socket.sendall(_frame(kind, ACK, 0, payload if kind == PING else b""))
        return result


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection((HOST, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _text(value: str) -> bytes:
    """A header string in HPACK's uncompressed form (RFC 7541, 5.2); up to 126 bytes."""
    return bytes([len(value)]) + value.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


PREDICT = "/tensorflow.serving.PredictionService/Predict"
# Not counted: connections are opened, and the server learns how quick the model is.
WARM_UP_SECONDS = 1.0


def rest(port: int, path: str, body: str, clients: int, seconds: float, rate: float | None = None) -> dict[str, Any]:
    """Runs clients that each repeat the same request whenever it has been answered.

    Args:
        port: The server's port.
        path: The URL's path.
        body: The request's body.
        clients: The number of clients.
        seconds: For how long, after one second that is not counted.
        rate: Requests per second of all clients together; None sends as fast as they are answered. With a rate,
            latencies count from when a request was due.

    Returns:
        `rate` in requests per second, `p50` and `p99` in milliseconds, `failed` as a count.
    """
    return _run([Rest(port, path, body) for _ in range(clients)], seconds, rate)


def grpc_predict(port: int, request_path: str, clients: int, seconds: float) -> dict[str, Any]:
    """Like `rest`, over gRPC.

    Args:
        port: The server's port.
        request_path: The file with the serialized request.
        clients: The number of clients.
        seconds: For how long, after one second that is not counted.
    """
    request = Path(request_path).read_bytes()
    return _run([Grpc(port, PREDICT, request) for _ in range(clients)], seconds, None)


def _run(connections: Sequence[Connection], seconds: float, rate: float | None) -> dict[str, Any]:
    poll = select.epoll()
    began = time.perf_counter()
    pause = len(connections) / rate if rate else 0.0
    due: dict[int, float] = {}
    waiting: list[tuple[float, int]] = []
    by_number = {connection.socket.fileno(): connection for connection in connections}
    for position, number in enumerate(by_number):
        poll.register(number, select.EPOLLIN)
        waiting.append((began + (position / rate if rate else 0.0), number))
    counted_from = began + WARM_UP_SECONDS
    end = counted_from + seconds
    latencies: list[float] = []
    failed = 0
    while (now := time.perf_counter()) < end:
        while waiting and waiting[0][0] <= now:
            moment, number = waiting.pop(0)
            due[number] = moment if rate else now
            by_number[number].send()
        for number, _ in poll.poll(max(0.0, min(waiting[0][0], end) - now) if waiting else end - now):
            good = by_number[number].receive()
            if good is None:
                continue
            now = time.perf_counter()
            failed += not good
            if now >= counted_from:
                latencies.append(now - due[number])
            if pause:
                waiting.append((due[number] + pause, number))
                waiting.sort()
            else:
                due[number] = now
                by_number[number].send()
    return _summary(latencies, failed, seconds)


def _summary(latencies: Sequence[float], failed: int, seconds: float) -> dict[str, Any]:
    if not latencies:
        raise RuntimeError("received no answer, expected some")
    ordered = sorted(latencies)
    p50, p99 = (1e3 * ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
    return {"rate": len(ordered) / seconds, "p50": p50, "p99": p99, "failed": failed}
