"""What the clients retry, when and how often, against a small server that fails on demand."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from server_helpers import free_port

from serving.client import ClientError, Code, RestClient, RetryPolicy

OK = b'{"model_version_status": [{"version": "3", "state": "AVAILABLE", "status": ' + (
    b'{"error_code": "OK", "error_message": ""}}]}'
)
PROJECT_ROOT = Path(__file__).resolve().parents[3]


class Stub(ThreadingHTTPServer):
    """Answers with the statuses in `script`, one after the other, then with 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[tuple[int, dict[str, str]]] = []
        self.ids: list[str] = []
        self.clients: set[tuple[str, int]] = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def do_GET(self) -> None:
        self.server.ids.append(self.headers["x-request-id"])
        self.server.clients.add(self.client_address)
        status, headers = self.server.script.pop(0) if self.server.script else (200, {})
        if status == 0:
            # Closes the connection without a response.
            self.close_connection = True
            return
        body = OK if status == 200 else b'{"error": "not now"}'
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def client(stub: Stub, slept: list[float]) -> Iterator[RestClient]:
    policy = RetryPolicy(attempts=4, sleep=slept.append)
    with RestClient(f"http://127.0.0.1:{stub.server_port}", retries=policy, timeout=20) as connected:
        yield connected


@pytest.mark.parametrize("status", [429, 502, 503, 0])
def test_a_server_that_fails_twice_is_asked_three_times(
    client: RestClient, stub: Stub, slept: list[float], status: int
) -> None:
    stub.script = [(status, {}), (status, {})]
    assert [version.version for version in client.status("m")] == [3]
    assert len(stub.ids) == 3
    # All attempts of a request have the same id.
    assert len(set(stub.ids)) == 1
    assert len(slept) == 2
    # The waits are drawn below a bound that doubles.
    assert 0 <= slept[0] <= 0.1
    assert 0 <= slept[1] <= 0.2


def test_connections_are_used_again(client: RestClient, stub: Stub) -> None:
    for _ in range(5):
        client.status("m")
    assert len(stub.ids) == 5
    assert len(stub.clients) == 1


def test_what_the_server_asks_to_wait_is_waited(client: RestClient, stub: Stub, slept: list[float]) -> None:
    stub.script = [(503, {"Retry-After": "7"}), (429, {"Retry-After": "3"})]
    client.status("m")
    assert slept == [7.0, 3.0]


def test_no_wait_outlasts_the_deadline(client: RestClient, stub: Stub, slept: list[float]) -> None:
    stub.script = [(503, {"Retry-After": "21"})]
    with pytest.raises(ClientError) as caught:
        client.status("m")
    assert (caught.value.code, caught.value.message, caught.value.retry_after) == (Code.UNAVAILABLE, "not now", 21.0)
    assert slept == []


def test_attempts_end(client: RestClient, stub: Stub, slept: list[float]) -> None:
    stub.script = [(503, {})] * 9
    with pytest.raises(ClientError) as caught:
        client.status("m")
    assert caught.value.code is Code.UNAVAILABLE
    assert (len(stub.ids), len(slept)) == (4, 3)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, Code.INVALID_ARGUMENT),
        (401, Code.UNAUTHENTICATED),
        (404, Code.NOT_FOUND),
        (413, Code.RESOURCE_EXHAUSTED),
        (500, Code.INTERNAL),
        (504, Code.DEADLINE_EXCEEDED),
        (302, Code.UNKNOWN),
    ],
)
def test_other_refusals_are_final(client: RestClient, stub: Stub, slept: list[float], status: int, code: Code) -> None:
    stub.script = [(status, {"location": "/elsewhere"})]
    with pytest.raises(ClientError) as caught:
        client.status("m")
    assert (caught.value.code, caught.value.message) == (code, "not now")
    assert (len(stub.ids), slept) == (1, [])


def test_a_refused_connection_is_tried_again(slept: list[float]) -> None:
    client = RestClient(url := f"http://127.0.0.1:{free_port()}", retries=RetryPolicy(attempts=3, sleep=slept.append))
    with client, pytest.raises(ClientError, match=f"no server answers at {url}: Connection refused"):
        client.status("m")
    assert len(slept) == 2


def test_the_client_of_rest_loads_neither_tensorflow_nor_grpc() -> None:
    source = "import sys, serving.client; print(sorted({'tensorflow', 'grpc', 'aiohttp'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=PROJECT_ROOT
    )
    assert result.stdout == "[]\n"
