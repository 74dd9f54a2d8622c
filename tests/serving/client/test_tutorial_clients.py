"""Clients as in TensorFlow Serving's own tutorials, against a whole server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import arithmetic_model
import grpc
import numpy as np
import pytest
import requests
import server_helpers
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("models")
    arithmetic_model.save(path)
    model_server = Server(server_helpers.settings(path, rest_api_port=server_helpers.free_port()))
    model_server.start()
    yield model_server
    model_server.drain()


def test_requests_post(server: Server) -> None:
    test_images = np.array([1.0, 2.5])
    data = json.dumps({"signature_name": "serving_default", "instances": test_images.tolist()})
    url = f"http://localhost:{server.rest_api_port}/v1/models/arithmetic"
    json_response = requests.post(f"{url}:predict", data=data, headers={"content-type": "application/json"}, timeout=60)
    predictions = json.loads(json_response.text)["predictions"]
    assert [row["y"] for row in predictions] == [2.5, 3.25]
    response = requests.post(f"{url}/versions/1:predict", json={"instances": [4]}, timeout=10)
    response.raise_for_status()
    assert response.json()["predictions"][0] == {"negative": -4.0, "y": 4.0}
    image = {"b64": base64.b64encode(b"jpeg").decode()}
    response = requests.post(f"{url}:predict", json={"signature_name": "upper", "instances": [image]}, timeout=10)
    assert response.json() == {"predictions": ["JPEG"]}
    assert requests.get(url, timeout=10).json()["model_version_status"][0]["state"] == "AVAILABLE"


def test_grpc_stub(server: Server) -> None:
    channel = grpc.insecure_channel(f"localhost:{server.port}")
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "arithmetic"
    request.model_spec.signature_name = "serving_default"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.array([1.0, 2.5], np.float32), shape=[2]))
    result = stub.Predict(request, 60.0)
    np.testing.assert_array_equal(tf.make_ndarray(result.outputs["y"]), np.array([2.5, 3.25], np.float32))
    assert result.outputs["y"].float_val[0] == 2.5
    later = stub.Predict.future(request, 60.0)
    assert tf.make_ndarray(later.result().outputs["negative"]).tolist() == [-1.0, -2.5]
    examples = classification_pb2.ClassificationRequest()
    examples.model_spec.name = "arithmetic"
    examples.model_spec.signature_name = "classify"
    examples.input.example_list.examples.extend([arithmetic_model.example(0.25)])
    result = stub.Classify(examples, 60.0)
    assert [(entry.label, entry.score) for entry in result.result.classifications[0].classes] == [
        *(("small", 0.75), ("large", 0.25))
    ]
    metadata = get_model_metadata_pb2.GetModelMetadataRequest()
    metadata.model_spec.name = "arithmetic"
    metadata.metadata_field.append("signature_def")
    assert "signature_def" in stub.GetModelMetadata(metadata, 60.0).metadata
    channel.close()
