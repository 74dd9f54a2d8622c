"""The server as a whole: ports, TLS, tokens, sockets, and how it stops."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arithmetic_model
import grpc
import pytest
import tensorflow as tf
from server_helpers import HOST, Authority, free_port, refusal, settings
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving import greeting, protos, security
from serving.errors import Code, ServingError
from serving.models.servable import Servable
from serving.server import Server, metrics_path
from serving.settings import ModelConfig, ServerSettings

StatusCode = grpc.StatusCode
WAIT_SECONDS = 30


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "arithmetic"
    arithmetic_model.save(path)
    return path


@contextmanager
def running(chosen: ServerSettings) -> Iterator[Server]:
    server = Server(chosen)
    server.start()
    try:
        yield server
    finally:
        server.drain()


def predict(channel: grpc.Channel, **kwargs: Any) -> list[float]:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic"})
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([2.0]))
    response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, **kwargs)
    return list(response.outputs["y"].float_val)


def test_a_unix_socket_answers_too(base_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "grpc.sock"
    chosen = settings(base_path, port=0, grpc_socket_path=str(path))
    with running(chosen) as server, grpc.insecure_channel(f"unix:{path}") as channel:
        assert predict(channel) == [3.0]
        assert server.port == 0


def test_a_token_is_asked_for(base_path: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    chosen = settings(base_path, bearer_token_file=tmp_path / "token")
    with running(chosen) as server, grpc.insecure_channel(f"{HOST}:{server.port}") as channel:
        assert predict(channel, metadata=(("authorization", "Bearer secret"),)) == [3.0]
        assert refusal(predict, channel) == (
            StatusCode.UNAUTHENTICATED,
            "received no bearer token, expected `Authorization: Bearer <token>`",
        )
        assert refusal(predict, channel, metadata=(("authorization", "Bearer wrong"),)) == (
            StatusCode.UNAUTHENTICATED,
            "received a wrong bearer token",
        )


def ssl_config(path: Path, authority: Authority, **others: Any) -> Path:
    key, certificate = authority.issue("server")
    path.write_text(str(protos.SSLConfig(server_key=key, server_cert=certificate, **others)))
    return path


def test_tls(base_path: Path, tmp_path: Path) -> None:
    authority = Authority("servers")
    chosen = settings(base_path, ssl_config_file=ssl_config(tmp_path / "ssl.config", authority))
    trusting = grpc.ssl_channel_credentials(authority.pem.encode())
    distrusting = grpc.ssl_channel_credentials(Authority("others").pem.encode())
    with running(chosen) as server:
        address = f"{HOST}:{server.port}"
        with grpc.secure_channel(address, trusting) as channel:
            assert predict(channel) == [3.0]
        with grpc.secure_channel(address, distrusting) as channel:
            assert refusal(predict, channel)[0] is StatusCode.UNAVAILABLE
        with grpc.insecure_channel(address) as channel:
            assert refusal(predict, channel)[0] is StatusCode.UNAVAILABLE


def test_mutual_tls_asks_clients_for_a_certificate_of_the_authority(base_path: Path, tmp_path: Path) -> None:
    servers, clients = Authority("servers"), Authority("clients")
    path = ssl_config(tmp_path / "ssl.config", servers, custom_ca=clients.pem, client_verify=True)
    with running(settings(base_path, ssl_config_file=path)) as server:
        address = f"{HOST}:{server.port}"
        for issuer, welcome in ((clients, True), (Authority("strangers"), False), (None, False)):
            own = [part.encode() for part in issuer.issue("client")] if issuer else []
            credentials = grpc.ssl_channel_credentials(servers.pem.encode(), *own)
            with grpc.secure_channel(address, credentials) as channel:
                if welcome:
                    assert predict(channel) == [3.0]
                else:
                    assert refusal(predict, channel)[0] is StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server_key: 1", "expected a SSLConfig in text form"),
        ('server_key: "a"', "without server_key or server_cert, expected both"),
        ('server_key: "a" server_cert: "b" client_verify: true', "without custom_ca, expected the authority"),
    ],
)
def test_an_ssl_config_that_does_not_fit_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "ssl.config"
    path.write_text(text)
    with pytest.raises(ServingError, match=expected):
        security.grpc_credentials(path)


def test_rest_takes_certificate_and_key_together(tmp_path: Path) -> None:
    authority = Authority("servers")
    key, certificate = authority.issue("server")
    for name, text in (("key", key), ("cert", certificate), ("ca", authority.pem)):
        (tmp_path / name).write_text(text)
    assert security.rest_context(ServerSettings()) is None
    chosen = {"rest_api_ssl_cert_file": tmp_path / "cert", "rest_api_ssl_key_file": tmp_path / "key"}
    context = security.rest_context(ServerSettings(**chosen))
    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE
    context = security.rest_context(ServerSettings(**chosen, rest_api_ssl_ca_file=tmp_path / "ca"))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(ServingError, match="expected rest_api_ssl_cert_file and rest_api_ssl_key_file"):
        security.rest_context(ServerSettings(rest_api_ssl_cert_file=tmp_path / "cert"))
    with pytest.raises(ServingError, match="expected PEM files that fit together"):
        security.rest_context(ServerSettings(**(chosen | {"rest_api_ssl_key_file": tmp_path / "none"})))


def test_a_taken_port_is_refused_before_anything_is_loaded(base_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        server = Server(settings(base_path, port=port))
        with pytest.raises(ServingError, match=f"cannot listen on {HOST}:{port}: Address already in use") as caught:
            server.start()
    assert caught.value.code is Code.UNAVAILABLE
    with pytest.raises(ServingError, match="Could not find any versions of model arithmetic"):
        server.manager.statuses("arithmetic")


def test_ports_stay_closed_where_nothing_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "empty" / "1").mkdir(parents=True)
    server = Server(settings(tmp_path / "empty"))
    with pytest.raises(ServingError, match=r"did not become available: .*arithmetic"):
        server.start()
    with socket.socket() as probe:
        assert probe.connect_ex((HOST, server.settings.port)) != 0


def test_a_server_without_any_port_is_refused(base_path: Path) -> None:
    with pytest.raises(ServingError, match="received neither port, grpc_socket_path nor rest_api_port"):
        Server(settings(base_path, port=0))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("prometheus_config { enable: true }", "/monitoring/prometheus/metrics"),
        ('prometheus_config { enable: true path: "/metrics" }', "/metrics"),
        ('prometheus_config { path: "/metrics" }', None),
        ("", None),
    ],
)
def test_metrics_are_shown_where_the_monitoring_config_says(text: str, path: str | None, tmp_path: Path) -> None:
    file = tmp_path / "monitoring.config"
    file.write_text(text)
    assert metrics_path(ServerSettings(monitoring_config_file=file)) == path
    assert metrics_path(ServerSettings()) is None


def test_a_deadline_ends_the_computation_too(saved_models: Path, tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "1").symlink_to(saved_models / "slow")
    chosen = settings(tmp_path / "slow", model_name="slow")
    request = predict_pb2.PredictRequest(model_spec={"name": "slow"})
    with running(chosen) as server, grpc.insecure_channel(f"{HOST}:{server.port}") as channel:
        call = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
        request.inputs["n"].CopyFrom(tf.make_tensor_proto(3, tf.int64))
        assert list(call(request, timeout=WAIT_SECONDS).outputs["counted"].int64_val) == [3]
        request.inputs["n"].CopyFrom(tf.make_tensor_proto(10**15, tf.int64))
        assert refusal(call, request, timeout=0.2)[0] is StatusCode.DEADLINE_EXCEEDED
        wait_until(lambda: server.metrics.request_count.value(("slow", "DEADLINE_EXCEEDED")) == 1)
        future = call.future(request, timeout=3)
        wait_until(lambda: server.metrics.in_flight.value(("GRPC",)) == 1)
        future.cancel()
        wait_until(lambda: server.metrics.request_count.value(("slow", "CANCELLED")) == 1)


def test_a_surprise_reaches_the_log_and_not_the_client(
    base_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprise(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr(Servable, "run", surprise)
    with running(settings(base_path)) as server, grpc.insecure_channel(f"{HOST}:{server.port}") as channel:
        code, text = refusal(predict, channel, metadata=(("x-request-id", "42"),))
    assert (code, text) == (StatusCode.INTERNAL, "internal error; the server's log says more about request 42")
    assert "a secret of the house" in caplog.text


class Gate:
    """Holds requests inside the model until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        run = Servable.run

        def held(*args: Any, **kwargs: Any) -> Any:
            self.entered.set()
            assert self.opened.wait(WAIT_SECONDS)
            return run(*args, **kwargs)

        monkeypatch.setattr(Servable, "run", held)


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Restores the signal handlers."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
def test_a_request_in_flight_is_answered_after_sigterm(base_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    server = Server(settings(base_path))
    server.stop_on_signals()
    server.start()
    with grpc.insecure_channel(f"{HOST}:{server.port}") as channel, ThreadPoolExecutor(2) as pool:
        prediction = pool.submit(predict, channel)
        assert gate.entered.wait(WAIT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        stopped = pool.submit(server.wait)
        wait_until(lambda: refused(server.port))
        assert not prediction.done()
        assert not stopped.done()
        gate.opened.set()
        assert prediction.result(WAIT_SECONDS) == [3.0]
        stopped.result(WAIT_SECONDS)
    assert not server.ready()
    assert [status.state.name for status in server.manager.statuses("arithmetic")] == ["END"]


def refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline


def test_the_greeting_says_what_is_served_where(base_path: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    chosen = settings(base_path, bearer_token_file=tmp_path / "token")
    with running(chosen) as server:
        assert list(greeting.lines(server)) == [
            f"Serving    arithmetic, version 1, from {base_path}",
            f"gRPC       {HOST}:{server.port}",
            "Stop       Ctrl-C; requests in flight are answered first",
        ]
        server.rest_api_port = free_port()
        assert greeting.curl(server, ModelConfig("arithmetic", base_path)) == (
            f'curl -H "Authorization: Bearer $(cat {tmp_path}/token)" -d \'{{"instances": [0.0]}}\' '
            f"http://{HOST}:{server.rest_api_port}/v1/models/arithmetic:predict"
        )
