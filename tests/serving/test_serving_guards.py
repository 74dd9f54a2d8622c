"""The guard rails of a whole server's REST port: TLS, client certificates, tokens, and bytes that are not text."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arithmetic_model
import pytest
import server_helpers
from prometheus_client.parser import text_string_to_metric_families
from server_helpers import HOST, Authority

from serving.server import Server

PREDICT = "/v1/models/arithmetic:predict"
PAGE = "/monitoring/prometheus/metrics"


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    arithmetic_model.save(path)
    return path


@contextmanager
def running(base_path: Path, **overrides: Any) -> Iterator[int]:
    """Runs a server; yields its REST port."""
    server = Server(server_helpers.settings(base_path, rest_api_port=server_helpers.free_port(), **overrides))
    server.start()
    try:
        yield server.rest_api_port
    finally:
        server.drain()


def predict(port: int, context: ssl.SSLContext | None, **headers: str) -> Any:
    scheme = "https" if context else "http"
    body = json.dumps({"instances": [2]}).encode()
    request = urllib.request.Request(f"{scheme}://{HOST}:{port}{PREDICT}", body, headers)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, context=context, timeout=60) as response:  # noqa: S310
        return json.load(response)


def exchange(port: int, data: bytes) -> bytes:
    """Sends raw bytes; returns everything received until the server closes the connection."""
    with socket.create_connection((HOST, port), timeout=60) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def write(folder: Path, authority: Authority, name: str) -> dict[str, Path]:
    """Writes a certificate, its key and its authority; returns their paths."""
    key, certificate = authority.issue(name)
    paths = {part: folder / f"{name}.{part}" for part in ("key", "cert", "ca")}
    for part, text in (("key", key), ("cert", certificate), ("ca", authority.pem)):
        paths[part].write_text(text)
    return paths


def test_rest_over_tls(base_path: Path, tmp_path: Path) -> None:
    servers, clients = Authority("servers"), Authority("clients")
    own, theirs = write(tmp_path, servers, "server"), write(tmp_path, clients, "client")
    trusting = ssl.create_default_context(cafile=str(own["ca"]))
    flags = {"rest_api_ssl_cert_file": own["cert"], "rest_api_ssl_key_file": own["key"]}
    expected = {"predictions": [{"negative": -2.0, "y": 3.0}]}
    with running(base_path, **flags) as port:
        assert predict(port, trusting) == expected
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            predict(port, ssl.create_default_context())
        with pytest.raises(OSError):  # noqa: PT011 - whichever way the connection breaks
            predict(port, None)
    with running(base_path, **flags, rest_api_ssl_ca_file=theirs["ca"]) as port:
        with pytest.raises(OSError):  # noqa: PT011 - the alert of TLS 1.3 comes while sending or while reading
            predict(port, trusting)
        trusting.load_cert_chain(theirs["cert"], theirs["key"])
        assert predict(port, trusting) == expected


def test_a_token_that_is_no_text_is_a_wrong_one(base_path: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sécret", encoding="utf-8")
    with running(base_path, bearer_token_file=tmp_path / "token") as port:
        head = f"GET {PREDICT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ".encode()
        reply = exchange(port, head + b"\xff\xfe\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 401 ")
        assert b"received a wrong bearer token" in reply
        reply = exchange(port, head + "sécret\r\n\r\n".encode())
        assert b"Malformed request: GET /v1/models/arithmetic:predict" in reply


def test_names_that_are_no_text_are_not_found_and_the_metrics_stay_readable(base_path: Path, tmp_path: Path) -> None:
    (tmp_path / "monitoring").write_text("prometheus_config { enable: true }")
    with running(base_path, monitoring_config_file=tmp_path / "monitoring") as port:
        assert predict(port, None) == {"predictions": [{"negative": -2.0, "y": 3.0}]}
        names = (b"%ff", b"a%22%0ab", b"%C3%A9", b"%ED%A0%80")
        for name in names:
            line = b"GET /v1/models/" + name + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            assert exchange(port, line).startswith(b"HTTP/1.1 404 ")
        with urllib.request.urlopen(f"http://{HOST}:{port}{PAGE}") as response:
            page = response.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(page)}
    counts = {tuple(s.labels.values()): s.value for s in families[":tensorflow:serving:request_count"].samples}
    assert counts == {
        ("arithmetic", "OK"): 1,
        ("\ufffd", "NOT_FOUND"): 1,
        ('a"\nb', "NOT_FOUND"): 1,
        ("é", "NOT_FOUND"): 1,
        ("\ufffd\ufffd\ufffd", "NOT_FOUND"): 1,
    }
    latency = families[":tensorflow:serving:request_latency"]
    assert latency.type == "histogram"
    answered = [sample.value for sample in latency.samples if sample.name.endswith("_count")]
    assert answered == [1]
