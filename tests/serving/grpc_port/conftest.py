"""A server with two versions of one model, and gRPC stubs for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arithmetic_model
import grpc
import pytest
from grpc_scene import models_config
from server_helpers import HOST, settings
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from serving.server import Server


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "arithmetic"
    for version in (1, 2):
        arithmetic_model.save(path, version)
    return path


@pytest.fixture(scope="module")
def server(base_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    config = tmp_path_factory.mktemp("config") / "models.config"
    config.write_text(models_config(base_path, 'version_labels { key: "stable" value: 1 }'))
    grpc_server = Server(
        settings(
            base_path,
            model_config_file=config,
            allow_version_labels_for_unavailable_models=True,
            max_request_bytes=100_000,
        )
    )
    grpc_server.start()
    yield grpc_server
    grpc_server.drain()


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"{HOST}:{server.port}") as opened:
        yield opened


@pytest.fixture(scope="module")
def predictions(channel: grpc.Channel) -> Any:
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def models(channel: grpc.Channel) -> Any:
    return model_service_pb2_grpc.ModelServiceStub(channel)
