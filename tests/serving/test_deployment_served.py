"""Our server, started like TensorFlow Serving by the generated files: the same flags, configs, probes and checks."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deployments
import grpc
import pytest
from deployments import BATCHED, PLAIN
from server_helpers import HOST, free_port

from serving import deployment, protos
from serving.deployment import docker
from serving.main import main
from serving.server import Server
from serving.settings import ServerSettings

CHECK_SECONDS = 20


@pytest.fixture(params=[PLAIN, BATCHED], ids=["plain", "batched"])
def server(request: pytest.FixtureRequest, push: Callable[..., Path], tmp_path: Path) -> Iterator[Server]:
    """Serves version 2 with compose.yaml's command line; only folders and ports are changed."""
    base_path = push(2, "half_plus_2").parent
    chosen = request.param
    texts = deployments.texts(chosen)
    for name in {docker.MODELS, docker.MONITORING, docker.BATCHING} & texts.keys():
        (tmp_path / name).write_text(texts[name].replace(chosen.folder, str(base_path)))
    words = [word.replace(docker.FOLDER, str(tmp_path)) for word in deployments.compose_service(chosen)["command"]]
    options = main.make_context("serve", words).params
    ports = {"port": free_port(), "rest_api_port": free_port()}
    server = Server(ServerSettings(**(options | ports)))
    server.start()
    assert server.settings.enable_batching is (chosen is BATCHED)
    yield server
    server.drain()


def get(server: Server, path: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(f"http://{HOST}:{server.rest_api_port}{path}") as response:
        return response.status, response.read()


def health_check(server: Server, chosen: deployment.Deployment) -> int:
    """Runs compose.yaml's health check against the server's port; returns its exit status."""
    kind, *words = deployments.compose_service(chosen)["healthcheck"]["test"]
    assert kind == "CMD"
    words = [word.replace("$$", "$").replace(f"/{docker.REST_PORT}", f"/{server.rest_api_port}") for word in words]
    return subprocess.run(words, timeout=CHECK_SECONDS, capture_output=True, check=False).returncode


def test_the_generated_configs_serve(server: Server) -> None:
    body = json.dumps({"instances": [2.0]}).encode()
    url = f"http://{HOST}:{server.rest_api_port}/v1/models/small:predict"
    with urllib.request.urlopen(url, data=body) as response:
        assert json.load(response) == {"predictions": [{"y": 3.0, "twice": 4.0}]}
    status, metrics = get(server, docker.METRICS_PATH)
    assert status == 200
    assert b':tensorflow:serving:request_count{model_name="small",status="OK"} 1' in metrics


def test_the_probes_succeed_once_a_version_serves(server: Server) -> None:
    container = deployments.container(PLAIN)
    assert get(server, container["readinessProbe"]["httpGet"]["path"])[0] == 200
    with grpc.insecure_channel(f"{HOST}:{server.port}") as channel:
        call: Any = channel.unary_unary(
            f"/{protos.HEALTH_SERVICE}/Check",
            request_serializer=protos.HealthCheckRequest.SerializeToString,
            response_deserializer=protos.HealthCheckResponse.FromString,
        )
        response = call(protos.HealthCheckRequest(service=container["startupProbe"]["grpc"]["service"]))
    assert response.status == protos.HealthCheckResponse.SERVING


def test_the_health_check_runs_in_bash_alone(server: Server) -> None:
    assert health_check(server, PLAIN) == 0


def test_the_health_check_fails_where_the_model_is_not_served_or_nobody_listens(server: Server) -> None:
    other = deployment.Deployment("other", PLAIN.local_folder, PLAIN.settings)
    assert health_check(server, other) != 0
    words = [word.replace(f"/{docker.REST_PORT}", f"/{free_port()}") for word in docker.health_check(PLAIN)]
    assert subprocess.run(words, timeout=CHECK_SECONDS, capture_output=True, check=False).returncode != 0
