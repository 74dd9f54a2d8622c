"""Clients, all in one process. They share the processor with the server, so they do as little as they can.

Requests are made beforehand and one thread watches all connections. What comes back is only looked at for whether it is
a good answer.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving.connections import Connection, Grpc, Rest

PREDICT = "/tensorflow.serving.PredictionService/Predict"
# Not counted: the server learns how quick the model is, connections are made.
WARM_UP_SECONDS = 1.0


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
    return _ask([Rest(port, path, body) for _ in range(clients)], seconds, rate)


def grpc_predict(port: int, request_path: str, clients: int, seconds: float) -> dict[str, Any]:
    """As `rest`, over gRPC.

    Args:
        port: The server's.
        request_path: Holds the serialized request.
        clients: How many.
        seconds: For how long, after one second that is not counted.
    """
    request = Path(request_path).read_bytes()
    return _ask([Grpc(port, PREDICT, request) for _ in range(clients)], seconds, None)


def _ask(connections: Sequence[Connection], seconds: float, rate: float | None) -> dict[str, Any]:
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
