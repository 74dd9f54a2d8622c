"""A server with batching: waiting threads, deadlines, parameters of models."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import batch_models
import grpc
import pytest
import server_helpers
import tensorflow as tf
from server_helpers import HOST, free_port
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving.errors import ServingError
from serving.server import Server

ROWS = 24
PATIENCE = 60.0
GATHERING = f"max_batch_size {{ value: {ROWS} }} batch_timeout_micros {{ value: 1000000000 }}"


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "rows"
    batch_models.write_rows(path / "1", 10.0)
    return path


@contextmanager
def running(base_path: Path, parameters: Path, **overrides: Any) -> Iterator[Server]:
    values = {"model_name": "rows", "enable_batching": True, "batching_parameters_file": parameters} | overrides
    server = Server(server_helpers.settings(base_path, rest_api_port=free_port(), **values))
    server.start()
    try:
        yield server
    finally:
        server.drain()


def over_rest(server: Server, number: int) -> Any:
    return ask(server, [[float(number)]])


def ask(server: Server, instances: list[list[float]]) -> Any:
    connection = http.client.HTTPConnection(HOST, server.rest_api_port, timeout=PATIENCE)
    connection.request("POST", "/v1/models/rows:predict", json.dumps({"instances": instances}))
    response = connection.getresponse()
    reply = response.status, json.loads(response.read())
    connection.close()
    return reply


def over_grpc(channel: grpc.Channel, number: int) -> dict[str, list[float]]:
    request = predict_pb2.PredictRequest(model_spec={"name": "rows"})
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([[float(number)]]))
    response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=PATIENCE)
    return {name: tf.make_ndarray(tensor).tolist() for name, tensor in response.outputs.items()}


def test_as_many_requests_as_a_batch_has_rows_wait_for_each_other_over_both_ports(
    base_path: Path, tmp_path: Path
) -> None:
    parameters = tmp_path / "batching.config"
    parameters.write_text(GATHERING)
    with running(base_path, parameters) as server, ThreadPoolExecutor(ROWS) as pool:
        expected = [{"rows": ROWS, "sum": 10.0 * number} for number in range(ROWS)]
        replies = list(pool.map(lambda number: over_rest(server, number), range(ROWS)))
        assert replies == [(200, {"predictions": [row]}) for row in expected]
        with grpc.insecure_channel(f"{HOST}:{server.port}") as channel:
            replies = list(pool.map(lambda number: over_grpc(channel, number), range(ROWS)))
        assert replies == [{name: [value] for name, value in row.items()} for row in expected]


def test_a_client_does_not_wait_beyond_its_deadline_for_a_batch(base_path: Path, tmp_path: Path) -> None:
    parameters = tmp_path / "batching.config"
    parameters.write_text("max_batch_size { value: 2 } batch_timeout_micros { value: 1000000000 }")
    with running(base_path, parameters, rest_api_timeout_in_ms=500) as server:
        status, reply = over_rest(server, 1)
        # The batch is now full, and the first request's thread is free again.
        assert over_rest(server, 2) == (200, {"predictions": [{"rows": 2, "sum": 20.0}]})
    assert status == 504
    assert reply == {"error": "The request waited longer than its deadline."}


def test_a_model_says_itself_how_it_is_batched(base_path: Path, tmp_path: Path) -> None:
    parameters = tmp_path / "batching.config"
    parameters.write_text("num_batch_threads { value: 1 }")
    path = shutil.copytree(base_path, tmp_path / "own")
    (path / "1" / "batching_params.pbtxt").write_text("max_batch_size { value: 2 }")
    with running(path, parameters, enable_per_model_batching_parameters=True) as server:
        refused = {"error": "Task size 3 is larger than maximum input batch size 2"}
        assert ask(server, [[1.0], [2.0], [3.0]]) == (400, refused)
    with running(base_path, parameters, enable_per_model_batching_parameters=True) as server:
        assert ask(server, [[1.0], [2.0], [3.0]])[0] == 200


def test_a_model_whose_own_file_is_wrong_is_not_served(base_path: Path, tmp_path: Path) -> None:
    parameters = tmp_path / "batching.config"
    parameters.write_text("")
    path = shutil.copytree(base_path, tmp_path / "own")
    (path / "1" / "batching_params.pbtxt").write_text("max_batch_size { value: -2 }")
    before = set(threading.enumerate())
    with (
        pytest.raises(ServingError, match=r"batching_params\.pbtxt: received max_batch_size -2, expected"),
        running(path, parameters, enable_per_model_batching_parameters=True),
    ):
        pass
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "serving-loader"]
