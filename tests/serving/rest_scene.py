"""Requests to a REST port, and its responses."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import server_helpers

from serving.dataplane import DataPlane
from serving.models.manager import Manager
from serving.monitoring import Metrics
from serving.rest.api import RestApi
from serving.rest.http_port import RestServer

MODEL = "/v1/models/arithmetic"
PREDICT = f"{MODEL}:predict"
PAGE = "/metrics"


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        assert self.json.keys() == {"error"}
        return str(self.json["error"])


@dataclass
class Rest:
    """A running server's REST port."""

    port: int
    metrics: Metrics = field(default_factory=Metrics)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection(server_helpers.HOST, self.port, timeout=30)
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, raw, headers or {})
        response = connection.getresponse()
        reply = Reply(response.status, {key.lower(): value for key, value in response.getheaders()}, response.read())
        connection.close()
        return reply

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.ask("POST", path, body, {key.replace("_", "-"): value for key, value in headers.items()})

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, None, headers)


def started(base_path: Path, token: str | None = None, **settings: Any) -> Iterator[Rest]:
    server_settings = server_helpers.settings(base_path, **({"max_request_bytes": 1 << 16} | settings))
    manager, metrics = Manager(server_settings), Metrics()
    manager.start()
    api = RestApi(DataPlane(manager, metrics))
    server = RestServer(server_settings, api, metrics, manager.ready, token, PAGE)
    yield Rest(server.start(), metrics)
    server.stop()
    manager.stop()
