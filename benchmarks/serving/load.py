"""Clients, all in one process. They share the processor with the server, so they do as little as they can.

Requests are made beforehand. REST goes over plain sockets with keep-alive, all watched by one thread; gRPC through a
channel for each client that sends and receives bytes. What comes back is only looked at for its status.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

HOST = "127.0.0.1"
PREDICT = "/tensorflow.serving.PredictionService/Predict"
# Not counted: the server learns how quick the model is, connections are made.
WARM_UP_SECONDS = 1.0
OK = b"HTTP/1.1 200"
ANSWER_BYTES = 1 << 16


def rest(port: int, path: str, body: str, clients: int, seconds: float, rate: float | None = None) -> dict[str, Any]:
    """Clients that each send the same request again once it is answered.

    Args:
        port: The server's.
        path: Of the URL.
        body: The request's.
        clients: How many.
        seconds: For how long, after one second that is not counted.
        rate: Requests a second of all clients together; None for as many as are answered. Latencies then count from
            when a request was due.

    Returns:
        `rate` in requests a second, `p50` and `p99` in milliseconds, `failed` as a count.
    """
    data = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    request = head.encode() + data
    sockets = [socket.create_connection((HOST, port)) for _ in range(clients)]
    poll = select.epoll()
    began = time.perf_counter()
    due: dict[int, float] = {}
    waiting: list[tuple[float, socket.socket]] = []
    by_number = {}
    for number, connection in enumerate(sockets):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(connection, select.EPOLLIN)
        by_number[connection.fileno()] = connection
        waiting.append((began + (number / rate if rate else 0.0), connection))
    pause = clients / rate if rate else 0.0
    counted_from = began + WARM_UP_SECONDS
    end = counted_from + seconds
    latencies: list[float] = []
    failed = 0
    while (now := time.perf_counter()) < end:
        while waiting and waiting[0][0] <= now:
            moment, connection = waiting.pop(0)
            due[connection.fileno()] = moment if rate else now
            connection.sendall(request)
        for number, _ in poll.poll(max(0.0, min(waiting[0][0], end) - now) if waiting else end - now):
            answer = by_number[number].recv(ANSWER_BYTES)
            now = time.perf_counter()
            failed += not answer.startswith(OK)
            if now >= counted_from:
                latencies.append(now - due[number])
            if pause:
                waiting.append((due[number] + pause, by_number[number]))
                waiting.sort(key=lambda entry: entry[0])
            else:
                due[number] = now
                by_number[number].sendall(request)
    return _summary(latencies, failed, seconds)


def grpc_predict(port: int, request_path: str, clients: int, seconds: float) -> dict[str, Any]:
    """As `rest`, over gRPC: each client is a thread with a channel of its own.

    Args:
        port: The server's.
        request_path: Holds the serialized request.
        clients: How many.
        seconds: For how long, after one second that is not counted.
    """
    request = Path(request_path).read_bytes()
    counted_from = time.perf_counter() + WARM_UP_SECONDS
    end = counted_from + seconds
    latencies: list[float] = []

    def ask() -> None:
        own = []
        with grpc.insecure_channel(f"{HOST}:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary(PREDICT)
            while (started := time.perf_counter()) < end:
                call(request)
                if started >= counted_from:
                    own.append(time.perf_counter() - started)
        latencies.extend(own)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _summary(latencies, 0, seconds)


def _summary(latencies: Sequence[float], failed: int, seconds: float) -> dict[str, Any]:
    if not latencies:
        raise RuntimeError("received no answer, expected some")
    ordered = sorted(latencies)
    p50, p99 = (1e3 * ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
    return {"rate": len(ordered) / seconds, "p50": p50, "p99": p99, "failed": failed}
