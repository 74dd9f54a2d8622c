"""Thousands of malformed requests: the server refuses them, and none exposes a fault of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
import server_helpers
from google.protobuf.message import DecodeError
from rest_scene import Rest

from benchmarks.serving import malformed_client, malformed_protos, models
from benchmarks.serving.malformed import Report
from benchmarks.serving.malformed_client import Tally
from benchmarks.serving.malformed_http import MODEL, PATH
from serving.server import Server

REQUESTS = 2000
# protobuf's own warning, about requests that the server refuses.
pytestmark = pytest.mark.filterwarnings("ignore:Unexpected end-group tag:RuntimeWarning")


def test_no_malformed_request_is_the_servers_fault(tmp_path: Path) -> None:
    models.save_several(tmp_path / "1")
    chosen = server_helpers.settings(tmp_path, model_name=MODEL, rest_api_port=server_helpers.free_port())
    server, tally = Server(chosen), Tally()
    server.start()
    try:
        asyncio.run(malformed_client.send(server.port, server.rest_api_port, REQUESTS, "tests", tally))
        reply = Rest(server.rest_api_port).post(f"{PATH}:predict", {"instances": [1.0, 2.0]})
        page = server.metrics.page().encode()
    finally:
        server.drain()
    assert not tally.faults, "\n".join(tally.faults[:5])
    assert tally.statuses.total() == REQUESTS
    assert tally.statuses["REST 400"] > REQUESTS / 10
    assert tally.statuses["gRPC INVALID_ARGUMENT"] > REQUESTS / 10
    assert reply.json == {"predictions": [2.5, 3.0]}
    assert f'model_name="{MODEL}",status="OK"'.encode() in page


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (b"HTTP/1.1 501 Not Implemented\r\n\r\n", ""),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", "500"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nTraceback (most recent call last)", "Traceback"),
        (b"nonsense", "no HTTP answer"),
    ],
)
def test_a_fault_is_noticed(response: bytes, fault: str) -> None:
    tally = Tally()
    malformed_client._judge(malformed_client.HttpRequest(b"GET /", complete=True), response, tally)
    assert [fault in recorded for recorded in tally.faults] == [True] * bool(fault)


def test_growth_is_counted_from_the_first_part() -> None:
    assert Report(10, 1.0, Tally(), (100, 104, 103), still_answers=True).good
    assert not Report(10, 1.0, Tally(), (100, 106, 103), still_answers=True).good
    assert not Report(10, 1.0, Tally(), (100, 100), still_answers=False).good


def test_a_reload_is_never_one_that_unloads() -> None:

    random, seen = Random(0), 0  # noqa: S311 - nothing secret
    while seen < 50:
        method, data = malformed_protos.grpc_request(random)
        if not method.endswith("HandleReloadConfigRequest"):
            continue
        seen += 1
        try:
            request = malformed_protos.METHODS["ModelService/HandleReloadConfigRequest"].FromString(data)
        except DecodeError:
            continue
        listed = request.config.WhichOneof("config") == "model_config_list"
        assert not listed or any(not config.name for config in request.config.model_config_list.config)
