"""Requests that TensorFlow Serving sends itself when it loads a model, so that no client waits for the first one.

TensorFlow initializes much of a model at its first call. Before TensorFlow Serving answers anyone, it replays the
PredictRequests of `assets.extra/tf_serving_warmup_requests` on the model beside that file, whatever model they name. It
refuses a model whose warm-up fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from components.trainer.raw_tensors import FeatureSpec, RawTensor
from components.trainer.signatures import Signatures

PLACE = "assets.extra/tf_serving_warmup_requests"
BATCHES = (1, 16)
"""Rows a request: one as from a client, and some more as from the server's own batching."""


def read_rows(files: Sequence[str], number: int = max(BATCHES)) -> list[bytes]:
    """The first serialized rows of gzip TFRecords."""
    records = tf.data.TFRecordDataset(list(files), compression_type="GZIP").take(number)
    return list(records.as_numpy_iterator())


def write(model: str, rows: Sequence[bytes], signatures: Signatures) -> None:
    """Writes the warm-up requests of a SavedModel, an uncompressed TFRecord of PredictionLogs.

    Args:
        model: The SavedModel's folder.
        rows: Serialized raw tf.Examples; columns that a request does not have are taken out.
        signatures: What the model can be asked: `serving_default` is, and `predict` where the model has it.
    """
    plain = [_without_labels(row, signatures.serving_spec) for row in rows]
    path = os.path.join(model, PLACE)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for size in sorted({min(size, len(plain)) for size in BATCHES}):
            for request in _requests(plain[:size], signatures):
                log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
                writer.write(log.SerializeToString(deterministic=True))


def _requests(rows: list[bytes], signatures: Signatures) -> Iterator[predict_pb2.PredictRequest]:
    yield _request("serving_default", {"examples": tf.constant(rows)})
    if signatures.raw_tensors:
        yield _request("predict", _raw(rows, signatures.raw_tensors, signatures.serving_spec))


def _request(signature: str, inputs: dict[str, Any]) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature
    for name, tensor in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
    return request


def _raw(rows: list[bytes], tensors: list[RawTensor], spec: dict[str, FeatureSpec]) -> dict[str, tf.Tensor]:
    parsed = tf.io.parse_example(rows, {raw.feature: spec[raw.feature] for raw in tensors})
    return {raw.name: raw.from_feature(parsed[raw.feature]) for raw in tensors}


def _without_labels(row: bytes, spec: dict[str, FeatureSpec]) -> bytes:
    example = tf.train.Example.FromString(row)
    for name in [name for name in example.features.feature if name not in spec]:
        del example.features.feature[name]
    return bytes(example.SerializeToString(deterministic=True))
