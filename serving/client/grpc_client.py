"""The gRPC client, on tensorflow-serving-api's messages, which load TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from serving.client.base import Call, Client, Model
from serving.client.connection import Connection
from serving.client.results import (
    DTYPES,
    Array,
    ClientError,
    Metadata,
    Signature,
    TensorSpec,
    VersionStatus,
)
from serving.errors import Code
from serving.protocol import AUTHORIZATION_HEADER, BEARER, REQUEST_ID_HEADER, SIGNATURE_FIELD

# The header by which gRPC's own retries let a server ask for a pause.
PUSHBACK = "grpc-retry-pushback-ms"
OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # `RetryPolicy` alone decides about retries, and then gets a fresh connection instead of gRPC's backoff.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
RETRYABLE = frozenset((Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED))
# How gRPC's messages for a connection that was never made begin.
NOT_CONNECTED = ("failed to connect to all addresses", "DNS resolution failed")


class GrpcClient(Client):
    """Sends requests to a model server over gRPC.

    Args:
        address: `host:port`, or `unix:path` for a socket.
        tls: Whether to use TLS; None uses it if `ca` or `certificate` is given.
        **options: The attributes of `Connection`: `token`, `ca`, `certificate`, `key`, `timeout`, `retries`.

    Raises:
        ClientError: INVALID_ARGUMENT, a certificate file cannot be read.
    """

    def __init__(self, address: str, *, tls: bool | None = None, **options: Any) -> None:
        super().__init__(Connection(**options))
        self._address = address
        secure = bool(self._connection.ca or self._connection.certificate) if tls is None else tls
        if secure:
            self._channel = grpc.secure_channel(address, _credentials(self._connection), OPTIONS)
        else:
            self._channel = grpc.insecure_channel(address, OPTIONS)
        self._predictions = PredictionServiceStub(self._channel)
        self._models = ModelServiceStub(self._channel)

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _predict(self, model: Model, signature: Signature, inputs: Mapping[str, Array], call: Call) -> dict[str, Array]:
        request = PredictRequest(model_spec=_spec(model, signature.name))
        for name, array in inputs.items():
            dtype = tf.as_dtype(signature.inputs[name].dtype)
            request.inputs[name].CopyFrom(tf.make_tensor_proto(array, dtype, array.shape))
        response = self._send(self._predictions.Predict, request, call)
        return {name: tf.make_ndarray(proto) for name, proto in sorted(response.outputs.items())}

    def _classify(
        self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call
    ) -> list[list[tuple[str, float]]]:
        request = ClassificationRequest(model_spec=_spec(model, signature), input=_input(examples))
        result = self._send(self._predictions.Classify, request, call).result
        return [[(entry.label, entry.score) for entry in row.classes] for row in result.classifications]

    def _regress(self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call) -> Array:
        request = RegressionRequest(model_spec=_spec(model, signature), input=_input(examples))
        result = self._send(self._predictions.Regress, request, call).result
        return np.array([entry.value for entry in result.regressions], np.float32)

    def _status(self, model: Model, call: Call) -> list[VersionStatus]:
        response = self._send(self._models.GetModelStatus, GetModelStatusRequest(model_spec=_spec(model)), call)
        return [
            VersionStatus(
                status.version,
                ModelVersionStatus.State.Name(status.state),
                Code.of_number(status.status.error_code),
                status.status.error_message,
            )
            for status in response.model_version_status
        ]

    def _metadata(self, model: Model, call: Call) -> Metadata:
        request = GetModelMetadataRequest(model_spec=_spec(model), metadata_field=[SIGNATURE_FIELD])
        response = self._send(self._predictions.GetModelMetadata, request, call)
        definitions = SignatureDefMap()
        response.metadata[SIGNATURE_FIELD].Unpack(definitions)
        signatures = {
            name: Signature(name, definition.method_name, _tensors(definition.inputs), _tensors(definition.outputs))
            for name, definition in sorted(definitions.signature_def.items())
            if not name.startswith("__saved_model")
        }
        return Metadata(response.model_spec.name, response.model_spec.version.value, signatures)

    def _send(self, method: Any, request: Any, call: Call) -> Any:
        headers = [(REQUEST_ID_HEADER, call.request_id)]
        if self._connection.token is not None:
            headers.append((AUTHORIZATION_HEADER, f"{BEARER}{self._connection.token}"))
        try:
            return method(request, timeout=call.seconds_left(), metadata=headers)
        except grpc.RpcError as error:
            raise self._refusal(error, call) from error

    def _refusal(self, error: Any, call: Call) -> ClientError:
        code = Code.of_number(error.code().value[0])
        trailing = dict(error.trailing_metadata() or ())
        details = error.details() or ""
        unreachable = code is Code.UNAVAILABLE and details.startswith(NOT_CONNECTED)
        pushback = trailing.get(PUSHBACK)
        return ClientError(
            code,
            f"no server answers at {self._address}: {details}" if unreachable else details,
            trailing.get(REQUEST_ID_HEADER, call.request_id),
            retry_after=int(pushback) / 1000 if pushback and pushback.isdecimal() else None,
            unreachable=unreachable,
            # A negative pushback means: do not retry.
            retryable=code in RETRYABLE and not (pushback or "").startswith("-"),
        )


def _spec(model: Model, signature: str = "") -> ModelSpec:
    spec = ModelSpec(name=model.name, signature_name=signature)
    if model.version is not None:
        spec.version.value = model.version
    elif model.label is not None:
        spec.version_label = model.label
    return spec


def _input(examples: list[dict[str, list[Any]]]) -> Input:
    examples_input = Input()
    for row in examples:
        example = examples_input.example_list.examples.add()
        for name, values in row.items():
            _fill(example.features.feature[name], values)
    return examples_input


def _fill(feature: tf.train.Feature, values: list[Any]) -> None:
    if any(isinstance(value, (str, bytes)) for value in values):
        feature.bytes_list.value.extend(value.encode() if isinstance(value, str) else value for value in values)
    elif any(isinstance(value, float) for value in values):
        feature.float_list.value.extend(values)
    else:
        feature.int64_list.value.extend(map(int, values))


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    return {name: _tensor(info) for name, info in sorted(infos.items())}


def _tensor(info: Any) -> TensorSpec:
    shape = None
    if not info.tensor_shape.unknown_rank:
        shape = tuple(None if dim.size < 0 else dim.size for dim in info.tensor_shape.dim)
    name = DataType.Name(info.dtype)
    return TensorSpec(DTYPES.get(name, name), shape)


def _credentials(connection: Connection) -> grpc.ChannelCredentials:
    try:
        ca, key, certificate = (
            Path(file).read_bytes() if file is not None else None
            for file in (connection.ca, connection.key, connection.certificate)
        )
    except OSError as error:
        raise ClientError(Code.INVALID_ARGUMENT, f"received {error.filename}, expected a PEM file: {error}") from error
    return grpc.ssl_channel_credentials(ca, key, certificate)
