"""A model behind the server's own code but without ports: what a request would be answered, asked by a call."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving.dataplane import DataPlane
from serving.errors import ServingError
from serving.grpc_port.methods import PREDICTION_SERVICE, Methods
from serving.models.manager import Manager
from serving.monitoring import Metrics
from serving.rest.api import RestApi
from serving.settings import ServerSettings

__all__ = ["InProcess", "ServingError", "serve"]

VERSION = "1"
REQUEST_SECONDS = 30.0


class InProcess:
    """One served model.

    Args:
        settings: The server's settings.
        manager: The manager of the one model, started.
    """

    def __init__(self, settings: ServerSettings, manager: Manager) -> None:
        plane = DataPlane(manager, Metrics())
        self._name = settings.model_name
        services = Methods(plane, settings.max_request_bytes).services()
        self._methods = {method.api: method for method in services[PREDICTION_SERVICE]}
        self._rest = RestApi(plane)

    def call(self, api: str, request: Any) -> Any:
        """Answers as gRPC does.

        Args:
            api: A method of PredictionService, such as `Predict`.
            request: Its request; the model's name is filled in.

        Raises:
            ServingError: The request is refused.
        """
        named = type(request)()
        named.CopyFrom(request)
        named.model_spec.name = self._name
        return self._methods[api].answer(named, time.monotonic() + REQUEST_SECONDS)

    def post(self, verb: str, body: bytes) -> bytes:
        """Answers as `POST /v1/models/<name>:<verb>` does.

        Raises:
            ServingError: The request is refused.
        """
        path = f"/v1/models/{self._name}:{verb}"
        answer = self._rest.answer("POST", path, body, time.monotonic() + REQUEST_SECONDS)
        if answer.error is not None:
            raise answer.error
        return answer.body


@contextmanager
def serve(name: str, model: Path, load_seconds: float) -> Iterator[InProcess]:
    """Loads a SavedModel, warms it up, and unloads it in the end.

    Args:
        name: What requests call it.
        model: The SavedModel's folder.
        load_seconds: How long loading may take.

    Raises:
        ServingError: It cannot be loaded or warmed up.
    """
    with tempfile.TemporaryDirectory() as base_path:
        Path(base_path, VERSION).symlink_to(model.resolve(), target_is_directory=True)
        told = {"model_name": name, "model_base_path": base_path}
        settings = ServerSettings.model_validate(
            {**told, "file_system_poll_wait_seconds": 0, "max_num_load_retries": 0}
        )
        manager = Manager(settings)
        try:
            manager.start(load_seconds)
            yield InProcess(settings, manager)
        finally:
            manager.stop()
