"""The REST and gRPC clients against a real server: one interface, the same values, the same errors."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import arithmetic_model
import numpy as np
import pytest
from server_helpers import HOST, Authority, free_port, settings

from serving import client as clients
from serving import protos
from serving.client import Client, ClientError, Code, Connection, GrpcClient, RestClient, RetryPolicy, connect
from serving.client.base import Model
from serving.server import Server
from serving.settings import ServerSettings

MODEL = "arithmetic"
ONCE = RetryPolicy(attempts=1)
Connected = Callable[..., Client]


@contextmanager
def running(chosen: ServerSettings) -> Iterator[Server]:
    server = Server(chosen)
    server.start()
    try:
        yield server
    finally:
        server.drain()


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / MODEL
    arithmetic_model.save(path)
    return path


@pytest.fixture(scope="module")
def server(base_path: Path) -> Iterator[Server]:
    with running(settings(base_path, rest_api_port=free_port())) as started:
        yield started


@pytest.fixture(params=["http", "grpc"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    port = server.rest_api_port if request.param == "http" else server.port
    with connect(f"{request.param}://{HOST}:{port}") as connected:
        yield connected


def refusal(call: Callable[..., object], *args: object, **kwargs: object) -> ClientError:
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_columns_give_typed_arrays(client: Client) -> None:
    prediction = client.predict(MODEL, {"x": [2, 4.5]})
    assert {name: (array.dtype.name, array.tolist()) for name, array in prediction.outputs.items()} == {
        "negative": ("float32", [-2.0, -4.5]),
        "y": ("float32", [3.0, 4.25]),
    }
    assert list(prediction.rows()) == [{"negative": -2.0, "y": 3.0}, {"negative": -4.5, "y": 4.25}]
    assert len(prediction.request_id) == 32


def test_rows_and_a_signature_with_one_input(client: Client) -> None:
    for instances in ([{"x": 2.0}, {"x": 4.5}], [2.0, 4.5]):
        assert client.predict(MODEL, instances=instances).outputs["y"].tolist() == [3.0, 4.25]
    assert client.predict(MODEL, np.array([2.0, 4.5])).outputs["y"].tolist() == [3.0, 4.25]


def test_what_is_no_number_travels_both_ways(client: Client) -> None:
    outputs = client.predict(MODEL, {"x": [np.nan, np.inf, -np.inf]}).outputs
    np.testing.assert_array_equal(outputs["negative"], np.array([np.nan, -np.inf, np.inf], np.float32))


def test_strings_are_bytes_in_arrays_and_text_in_rows(client: Client) -> None:
    prediction = client.predict(MODEL, instances=["größe", b"ab\xff"], signature="upper")
    assert prediction.outputs["upper"].tolist() == ["GRößE".encode(), b"AB\xff"]
    assert list(prediction.rows()) == [{"upper": "GRößE"}, {"upper": b"AB\xff"}]


def test_a_version_can_be_asked_for(client: Client) -> None:
    assert client.predict(MODEL, [2.0], version=1).outputs["y"].tolist() == [3.0]
    error = refusal(client.predict, MODEL, [2.0], version=7)
    assert (error.code, error.message) == (Code.NOT_FOUND, "Servable not found for request: Specific(arithmetic, 7)")
    error = refusal(client.predict, MODEL, [2.0], label="canary")
    assert error.code is Code.INVALID_ARGUMENT
    assert "canary" in error.message
    error = refusal(client.predict, MODEL, [2.0], version=1, label="canary")
    assert error.message == "received version and label, expected one of them"


def test_classify_and_regress(client: Client) -> None:
    examples = [{"x": 0.25}, {"x": [1.0]}]
    classes = client.classify(MODEL, examples, signature="classify").classes
    assert classes == [[("small", 0.75), ("large", 0.25)], [("small", 0.0), ("large", 1.0)]]
    values = client.regress(MODEL, examples, signature="regress").values
    assert (values.dtype, values.tolist()) == (np.float32, [2.125, 2.5])
    assert refusal(client.regress, MODEL, []).message == "received no examples, expected at least one"


def test_status_and_metadata(client: Client) -> None:
    assert client.status(MODEL) == [clients.VersionStatus(1, "AVAILABLE", Code.OK, "")]
    metadata = client.metadata(MODEL)
    assert (metadata.model, metadata.version) == (MODEL, 1)
    assert sorted(metadata.signatures) == ["classify", "number", "regress", "serving_default", "upper"]
    assert metadata.signatures["serving_default"] == clients.Signature(
        "serving_default",
        "tensorflow/serving/predict",
        {"x": clients.TensorSpec("float32", (None,))},
        {"negative": clients.TensorSpec("float32", (None,)), "y": clients.TensorSpec("float32", (None,))},
    )
    assert refusal(client.status, "other").code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("inputs", "signature", "message"),
    [
        ({"y": [1.0]}, "serving_default", "signature serving_default has no input 'y'. There are: x."),
        ({}, "serving_default", "lacks the inputs x of signature serving_default"),
        (["a"], "serving_default", "input 'x' takes float32 of shape [any]: str32 values do not fit"),
        ([1.0], "upper", "input 'words' takes string of shape [any]: received 1.0, expected text or bytes"),
        ([1.0], "uper", "arithmetic has no signature 'uper', only classify, number, regress, serving_default, upper"),
    ],
)
def test_what_does_not_fit_the_signature_is_refused_before_it_is_sent(
    client: Client, inputs: object, signature: str, message: str
) -> None:
    error = refusal(client.predict, MODEL, inputs, signature=signature)
    assert (error.code, error.message) == (Code.INVALID_ARGUMENT, message)


def test_rows_that_do_not_fit_are_refused_by_number(client: Client) -> None:
    error = refusal(client.predict, MODEL, instances=[{"x": 1.0}, {"xx": 1.0}])
    assert error.message == "instance 2: signature serving_default has no input 'xx'. Did you mean x?"
    assert refusal(client.predict, MODEL, instances=[]).message == "received no instances, expected at least one"
    assert refusal(client.predict, MODEL).message == "expected one of inputs and instances"


def test_an_error_carries_code_message_and_request_id(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    error = refusal(client.predict, MODEL, instances=["no number"], signature="number")
    assert (error.code, error.retryable) == (Code.INVALID_ARGUMENT, False)
    assert "no number" in error.message
    assert str(error) == f"INVALID_ARGUMENT: {error.message} (request {error.request_id})"
    # The server's log has the same id.
    assert error.request_id in caplog.text
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(copy), copy.code, copy.request_id) == (str(error), error.code, error.request_id)


def test_a_signature_is_looked_up_once_and_again_after_a_refusal(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[Model] = []
    metadata = client._metadata
    monkeypatch.setattr(client, "_metadata", lambda model, call: models.append(model) or metadata(model, call))
    for _ in range(3):
        client.predict(MODEL, [1.0])
    assert models == [Model(MODEL)]
    refusal(client.predict, MODEL, ["a"])
    client.predict(MODEL, [1.0])
    assert models == [Model(MODEL)] * 2


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    for url in (f"http://{HOST}:{free_port()}", f"grpc://{HOST}:{free_port()}"):
        with connect(url, Connection(retries=ONCE)) as client:
            error = refusal(client.status, MODEL)
        assert (error.code, error.unreachable, error.retryable) == (Code.UNAVAILABLE, True, True)
        assert error.message.startswith(f"no server answers at {url.removeprefix('grpc://')}: ")


def test_a_deadline_ends_the_call(saved_models: Path, tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "1").symlink_to(saved_models / "slow")
    chosen = settings(tmp_path / "slow", model_name="slow", rest_api_port=free_port(), rest_api_timeout_in_ms=500)
    with running(chosen) as server:
        for url in (f"http://{HOST}:{server.rest_api_port}", f"grpc://{HOST}:{server.port}"):
            with connect(url) as client:
                assert client.predict("slow", {"n": 3}).outputs["counted"].tolist() == 3
                error = refusal(client.predict, "slow", {"n": 10**15}, timeout=0.2)
                assert (error.code, error.retryable) == (Code.DEADLINE_EXCEEDED, False)


# Python 3.10's asyncio leaves the server's side of a refused handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_tls_with_certificates_of_both_sides_and_a_token(base_path: Path, tmp_path: Path) -> None:
    authority = Authority("both")
    files = {}
    for name in ("server", "client"):
        for kind, pem in zip(("key", "certificate"), authority.issue(name), strict=True):
            files[f"{name}.{kind}"] = tmp_path / f"{name}.{kind}"
            files[f"{name}.{kind}"].write_text(pem)
    (tmp_path / "ca").write_text(authority.pem)
    (tmp_path / "other_ca").write_text(Authority("other").pem)
    (tmp_path / "token").write_text("secret\n")
    ssl_config = protos.SSLConfig(
        server_key=files["server.key"].read_text(),
        server_cert=files["server.certificate"].read_text(),
        custom_ca=authority.pem,
        client_verify=True,
    )
    (tmp_path / "ssl.config").write_text(str(ssl_config))
    chosen = settings(
        base_path,
        rest_api_port=free_port(),
        ssl_config_file=tmp_path / "ssl.config",
        rest_api_ssl_cert_file=files["server.certificate"],
        rest_api_ssl_key_file=files["server.key"],
        rest_api_ssl_ca_file=tmp_path / "ca",
        bearer_token_file=tmp_path / "token",
    )
    options = {"certificate": files["client.certificate"], "key": files["client.key"], "retries": ONCE}
    with running(chosen) as server:
        for url in (f"https://{HOST}:{server.rest_api_port}", f"grpcs://{HOST}:{server.port}"):
            with connect(url, Connection(ca=tmp_path / "ca", **options)) as client:
                error = refusal(client.predict, MODEL, [2.0])
                assert error.code is Code.UNAUTHENTICATED
                assert error.message.startswith("received no bearer token")
            for distrusted in (
                Connection(ca=tmp_path / "other_ca", **options),
                Connection(ca=tmp_path / "ca", retries=ONCE),
            ):
                with connect(url, distrusted) as client:
                    assert refusal(client.predict, MODEL, [2.0]).code is Code.UNAVAILABLE
            with connect(url, Connection(token="secret", ca=tmp_path / "ca", **options)) as client:  # noqa: S106
                assert client.predict(MODEL, [2.0]).outputs["y"].tolist() == [3.0]


def test_a_certificate_for_another_address_is_refused(base_path: Path, tmp_path: Path) -> None:
    authority = Authority("other address")
    for kind, pem in zip(("key", "certificate"), authority.issue("server", "127.0.0.2"), strict=True):
        (tmp_path / kind).write_text(pem)
    (tmp_path / "ca").write_text(authority.pem)
    chosen = settings(
        base_path,
        rest_api_port=free_port(),
        rest_api_ssl_cert_file=tmp_path / "certificate",
        rest_api_ssl_key_file=tmp_path / "key",
    )
    with (
        running(chosen) as server,
        connect(f"https://{HOST}:{server.rest_api_port}", Connection(ca=tmp_path / "ca", retries=ONCE)) as client,
    ):
        error = refusal(client.predict, MODEL, [2.0])

    assert error.code is Code.UNAVAILABLE
    assert "'127.0.0.1' doesn't match '127.0.0.2'" in error.message
    gc.collect()


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    error = refusal(connect, "localhost:8501")
    assert error.message == (
        "received server 'localhost:8501', expected one of "
        "http://host:port, https://host:port, grpc://host:port, grpcs://host:port"
    )
    missing = tmp_path / "missing.pem"
    for make in (RestClient, GrpcClient):
        error = refusal(make, "https://localhost", ca=missing)
        assert error.message.startswith(f"received {missing}, expected ")
    assert refusal(Connection, key=missing).message == "received one of certificate and key, expected both or none"
    assert refusal(Connection, timeout=0).message == "received timeout=0, expected more than 0 seconds"
