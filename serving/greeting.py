"""What the server says once it answers: what is served where, and a command that asks it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from serving import model_config, samples
from serving.manager import ModelRequest
from serving.settings import ModelConfig

if TYPE_CHECKING:
    from serving.server import Server

# Longer bodies, such as images, are no command to copy.
LONGEST_BODY = 2000


def lines(server: Server) -> Iterator[str]:
    """The lines to print, the models first."""
    settings = server.settings
    models = model_config.configured(settings)
    for model in models:
        versions = ", ".join(str(status.version) for status in server.manager.statuses(model.name))
        yield _line("Serving", f"{model.name}, version {versions}, from {_shown(model.base_path)}")
    if server.port:
        yield _line("gRPC", f"{settings.host}:{server.port}{' (TLS)' if settings.ssl_config_file else ''}")
    if settings.grpc_socket_path:
        yield _line("gRPC", f"unix:{settings.grpc_socket_path}")
    if server.rest_api_port:
        yield _line("REST", f"{_rest(server)}/v1/models/{'|'.join(model.name for model in models)}")
        if server.metrics_path:
            yield _line("Metrics", f"{_rest(server)}{server.metrics_path}")
        for model in models:
            yield _line("Try", curl(server, model))
    yield _line("Stop", "Ctrl-C; requests in flight are answered first")


def curl(server: Server, model: ModelConfig) -> str:
    """A command that asks the model and works as it stands; for large inputs, one that says what they are."""
    with server.manager.use(ModelRequest(model.name)) as servable:
        body = json.dumps(samples.request(servable, model))
    parts = ["curl", *_access(server)]
    url = f"{_rest(server)}/v1/models/{model.name}"
    if len(body) > LONGEST_BODY:
        return " ".join([*parts, f"{url}/metadata"])
    return " ".join([*parts, "-d", shlex.quote(body), f"{url}:predict"])


def _access(server: Server) -> Iterator[str]:
    settings = server.settings
    if settings.rest_api_ssl_cert_file:
        yield f"--cacert {shlex.quote(str(settings.rest_api_ssl_cert_file))}"
    if settings.rest_api_ssl_ca_file:
        yield "--cert client.pem --key client.key"
    if settings.bearer_token_file:
        yield f'-H "Authorization: Bearer $(cat {shlex.quote(str(settings.bearer_token_file))})"'


def _rest(server: Server) -> str:
    scheme = "https" if server.settings.rest_api_ssl_cert_file else "http"
    return f"{scheme}://{server.settings.host}:{server.rest_api_port}"


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _line(heading: str, text: str) -> str:
    return f"{heading:<10} {text}"
