"""Connections of a client that asks the same again and again: requests are bytes that are made once."""

from __future__ import annotations

import socket
import struct
from typing import Protocol

HOST = "127.0.0.1"
ANSWER_BYTES = 1 << 16

OK = b"HTTP/1.1 200"

# HTTP/2, RFC 9113: kinds of frames and their flags.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
FRAME_HEAD = 9
WINDOW, LARGE_WINDOW = 65_535, 1 << 30
# Of a gRPC message: whether it is compressed, and its length.
MESSAGE_HEAD = 5


class Connection(Protocol):
    """One client's connection.

    Attributes:
        socket: What to wait for.
    """

    socket: socket.socket

    def send(self) -> None:
        """Sends the request."""

    def receive(self) -> bool | None:
        """Reads what is there: whether the answer is a good one; None where it is not complete yet."""


class Rest:
    """HTTP/1.1 with keep-alive; a good answer has the status 200.

    Args:
        port: The server's.
        path: Of the URL.
        body: The request's, JSON.
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
        """See `Connection`; an answer of one row comes at once."""
        return self.socket.recv(ANSWER_BYTES).startswith(OK)


class Grpc:
    """gRPC over HTTP/2 without TLS, one call at a time; a good answer brings a message.

    A Python channel takes as long for a call as the server does, and on two cores takes it from the server.

    Args:
        port: The server's.
        method: `/package.Service/Method`.
        message: The request, serialized.
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
            RuntimeError: The server has not yet read what it was sent before.
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
    """A string of a header as HPACK has it, not compressed (RFC 7541, 5.2); up to 126 bytes."""
    return bytes([len(value)]) + value.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
