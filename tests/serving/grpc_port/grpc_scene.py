"""Requests to the gRPC services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arithmetic_model
import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

StatusCode = grpc.StatusCode
MISSING_MODEL_SPEC = (StatusCode.INVALID_ARGUMENT, "Missing ModelSpec")


def models_config(base_path: Path, more: str = "") -> str:
    return (
        'model_config_list { config { name: "arithmetic" model_platform: "tensorflow" '
        f'base_path: "{base_path}" model_version_policy {{ all {{}} }} {more} }} }}'
    )


def predict_request(*x: float, **spec: Any) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic", **spec})
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(x, tf.float32))
    return request


def ask(request_class: Any, *x: float, **spec: Any) -> Any:
    request = request_class(model_spec={"name": "arithmetic", **spec})
    request.input.example_list.examples.extend(arithmetic_model.example(value) for value in x)
    return request
