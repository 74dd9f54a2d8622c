"""A request that a model answers, to show how it is asked: recorded with the model, or zeros of the right shapes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving import records, source, tensors
from serving.errors import ServingError
from serving.servable import Servable, Signature, TensorSpec
from serving.settings import ModelConfig
from serving.warm_up import REQUESTS

DEFAULT_SIGNATURE = "serving_default"
MAX_BYTES = 2**20


def request(servable: Servable, model: ModelConfig) -> dict[str, Any]:
    """The body of a REST predict request with one row.

    Args:
        servable: The version that will be asked.
        model: Its model.
    """
    name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in servable.signatures else next(iter(servable.signatures))
    row = _recorded(servable, model, name)
    example = _example(row)
    if example is not None and (columns := _signature_of_columns(servable, name, example)) is not None:
        # Named columns say more than a serialized example.
        row = {column: _feature(example, column, spec) for column, spec in columns.inputs.items()}
        name = columns.name
    if row is None:
        row = {column: _zeros(spec) for column, spec in servable.signatures[name].inputs.items()}
    values = {column: _json(value) for column, value in row.items()}
    body = {} if name == DEFAULT_SIGNATURE else {"signature_name": name}
    return body | {"instances": [values if len(values) > 1 else next(iter(values.values()), None)]}


def _recorded(servable: Servable, model: ModelConfig, signature: str) -> dict[str, Any] | None:
    """The first row of the first recorded predict request for the signature."""
    path = source.aspired(model).get(servable.version)
    if path is None or not (path / REQUESTS).exists():
        return None
    for record in records.read(path / REQUESTS):
        asked = PredictionLog.FromString(record).predict_log.request
        if asked.inputs and (asked.model_spec.signature_name or DEFAULT_SIGNATURE) == signature:
            return _first_row(asked)
    return None


def _first_row(asked: PredictRequest) -> dict[str, Any] | None:
    try:
        arrays = {name: tensors.to_array(name, proto, MAX_BYTES) for name, proto in asked.inputs.items()}
    except ServingError:
        # Too large to be shown.
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
    """The signature that computes the same from the example's features as columns."""
    outputs = servable.signatures[name].outputs.keys()
    features = example.features.feature.keys()
    for signature in servable.signatures.values():
        known = set(signature.inputs) <= set(features) and len(signature.inputs) > 1
        if known and signature.outputs.keys() == outputs and all(_scalar(spec) for spec in signature.inputs.values()):
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
