"""What the server prints when it is ready: what is served where, and a command that sends a request."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving import messages
from serving.errors import ServingError
from serving.models import configuration, loader, warm_up
from serving.models.manager import ModelRequest
from serving.models.servable import Servable, Signature, TensorSpec
from serving.models.warm_up import REQUESTS
from serving.protocol import DEFAULT_SIGNATURE
from serving.settings import ModelConfig

if TYPE_CHECKING:
    from serving.server import Server


MAX_BYTES = 2**20


def sample_request(servable: Servable, model: ModelConfig) -> dict[str, Any]:
    """The body of a REST predict request with one row.

    Args:
        servable: The version that will answer.
        model: Its model.
    """
    name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in servable.signatures else next(iter(servable.signatures))
    row = _recorded_row(servable, model, name)
    example = _example(row)
    if example is not None and (columns := _signature_of_columns(servable, name, example)) is not None:
        # Named columns are more telling than a serialized example.
        row = {column: _feature(example, column, spec) for column, spec in columns.inputs.items()}
        name = columns.name
    if row is None:
        row = {column: _zeros(spec) for column, spec in servable.signatures[name].inputs.items()}
    values = {column: _json(value) for column, value in row.items()}
    body = {} if name == DEFAULT_SIGNATURE else {"signature_name": name}
    return body | {"instances": [values if len(values) > 1 else next(iter(values.values()), None)]}


def _recorded_row(servable: Servable, model: ModelConfig, signature: str) -> dict[str, Any] | None:
    """The first row of the first recorded predict request for the signature."""
    path = loader.aspired_versions(model).get(servable.version)
    if path is None or not (path / REQUESTS).exists():
        return None
    for record in warm_up.read_records(path / REQUESTS):
        request = PredictionLog.FromString(record).predict_log.request
        if request.inputs and (request.model_spec.signature_name or DEFAULT_SIGNATURE) == signature:
            return _first_row(request)
    return None


def _first_row(request: PredictRequest) -> dict[str, Any] | None:
    try:
        arrays = {name: messages.read_tensor(name, proto, MAX_BYTES) for name, proto in request.inputs.items()}
    except ServingError:
        # Too large to show.
        return None
    return {name: array[0] for name, array in arrays.items()} if all(map(np.ndim, arrays.values())) else None


def _example(row: dict[str, Any] | None) -> tf.train.Example | None:
    """The tf.Example that is the only value of the row, if it is one."""
    if row is None or len(row) != 1 or not isinstance(serialized := next(iter(row.values())), bytes):
        return None
    try:
        example = tf.train.Example.FromString(serialized)
    except DecodeError:
        return None
    return example if example.features.feature else None


def _signature_of_columns(servable: Servable, name: str, example: tf.train.Example) -> Signature | None:
    """The signature that computes the same outputs from the example's features as columns, if there is one."""
    outputs = servable.signatures[name].outputs.keys()
    features = example.features.feature.keys()
    for signature in servable.signatures.values():
        has_columns = set(signature.inputs) <= set(features) and len(signature.inputs) > 1
        if (
            has_columns
            and signature.outputs.keys() == outputs
            and all(_scalar(spec) for spec in signature.inputs.values())
        ):
            return signature
    return None


def _scalar(spec: TensorSpec) -> bool:
    return spec.shape is not None and len(spec.shape) == 1


def _feature(example: tf.train.Example, name: str, spec: TensorSpec) -> Any:
    feature = example.features.feature[name]
    values = getattr(feature, feature.WhichOneof("kind") or "int64_list").value
    return values[0] if values else _zeros(spec)


def _zeros(spec: TensorSpec) -> Any:
    shape = [1 if size is None else size for size in (spec.shape or (1,))][1:]
    return np.full(shape, b"", object) if spec.dtype == tf.string else np.zeros(shape, spec.dtype.as_numpy_dtype)


def _json(value: Any) -> Any:
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(plain, list):
        return [_json(entry) for entry in plain]
    if isinstance(plain, bytes):
        text = plain.decode("utf-8", "replace")
        return text if text.encode() == plain and text.isprintable() else {"b64": base64.b64encode(plain).decode()}
    return plain


# Longer bodies, such as images, are too long to copy as a command.
LONGEST_BODY = 2000


def lines(server: Server) -> Iterator[str]:
    """The lines to print, the models first."""
    settings = server.settings
    models = configuration.configured_models(settings)
    for model in models:
        versions = ", ".join(str(status.version) for status in server.manager.statuses(model.name))
        yield _line("Serving", f"{model.name}, version {versions}, from {_short_path(model.base_path)}")
    if server.port:
        yield _line("gRPC", f"{settings.host}:{server.port}{' (TLS)' if settings.ssl_config_file else ''}")
    if settings.grpc_socket_path:
        yield _line("gRPC", f"unix:{settings.grpc_socket_path}")
    if server.rest_api_port:
        yield _line("REST", f"{_rest_address(server)}/v1/models/{'|'.join(model.name for model in models)}")
        if server.metrics_path:
            yield _line("Metrics", f"{_rest_address(server)}{server.metrics_path}")
        for model in models:
            yield _line("Try", curl(server, model))
    yield _line("Stop", "Ctrl-C; requests in flight are answered first")


def curl(server: Server, model: ModelConfig) -> str:
    """A command that sends a request and works as printed; for large inputs, one that describes them."""
    with server.manager.use(ModelRequest(model.name)) as servable:
        body = json.dumps(sample_request(servable, model))
    parts = ["curl", *_access_options(server)]
    url = f"{_rest_address(server)}/v1/models/{model.name}"
    if len(body) > LONGEST_BODY:
        return " ".join([*parts, f"{url}/metadata"])
    return " ".join([*parts, "-d", shlex.quote(body), f"{url}:predict"])


def _access_options(server: Server) -> Iterator[str]:
    settings = server.settings
    if settings.rest_api_ssl_cert_file:
        yield f"--cacert {shlex.quote(str(settings.rest_api_ssl_cert_file))}"
    if settings.rest_api_ssl_ca_file:
        yield "--cert client.pem --key client.key"
    if settings.bearer_token_file:
        yield f'-H "Authorization: Bearer $(cat {shlex.quote(str(settings.bearer_token_file))})"'


def _rest_address(server: Server) -> str:
    scheme = "https" if server.settings.rest_api_ssl_cert_file else "http"
    return f"{scheme}://{server.settings.host}:{server.rest_api_port}"


def _short_path(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _line(heading: str, text: str) -> str:
    return f"{heading:<10} {text}"
