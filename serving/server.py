"""The server: its ports open when the models are loaded and close when the last request has been answered."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from types import FrameType
from typing import TYPE_CHECKING

from serving import monitoring, security
from serving.dataplane import DataPlane
from serving.errors import Code, ServingError, invalid
from serving.grpc_port import health
from serving.grpc_port.methods import Methods
from serving.grpc_port.services import GrpcServer
from serving.models.manager import Manager
from serving.monitoring import DEFAULT_PATH, Metrics
from serving.protos import MonitoringConfig, read_text_proto
from serving.settings import ServerSettings

if TYPE_CHECKING:
    from serving.rest.http_port import RestServer

UNIX = "unix:"
log = logging.getLogger(__name__)


class Server:
    """A model server.

    Args:
        settings: The server's settings.

    Attributes:
        settings: The server's settings.
        manager: The models.
        metrics: What is counted.
        metrics_path: The path of the metrics on the REST port; None if they are not shown.
        port: gRPC's port once it is open; 0 if there is none.
        rest_api_port: REST's port once it is open; 0 if there is none.

    Raises:
        ServingError: INVALID_ARGUMENT, a setting, or a file that it names, is invalid.
    """

    def __init__(self, settings: ServerSettings) -> None:
        if not settings.port and not settings.grpc_socket_path and not settings.rest_api_port:
            raise invalid("received neither port, grpc_socket_path nor rest_api_port, expected one of them")
        self.settings = settings
        monitoring.log_answered(settings.access_log)
        self.metrics = Metrics()
        self.metrics_path = metrics_path(settings)
        self.token = security.read_token(settings.bearer_token_file) if settings.bearer_token_file else None
        self.manager = Manager(settings)
        self.port = 0
        self.rest_api_port = 0
        self._stop = threading.Event()
        credentials = security.grpc_credentials(settings.ssl_config_file) if settings.ssl_config_file else None
        self._rest_context = security.rest_context(settings)
        health_services = [health.health(self.ready)] if settings.enable_grpc_healthcheck_service else []
        if settings.enable_grpc_reflection:
            health_services.append(health.reflection())
        self._rest: RestServer | None = None
        self._plane = DataPlane(self.manager, self.metrics)
        methods = Methods(self._plane, settings.max_request_bytes)
        self._grpc = GrpcServer(settings, methods, self.metrics, self.token, health_services, credentials)

    def ready(self) -> bool:
        """Whether requests are answered: every model is available, and the server is not being stopped."""
        return not self._stop.is_set() and self.manager.ready()

    def start(self) -> None:
        """Loads the models, then opens the ports.

        Raises:
            ServingError: A port is taken, or a model cannot be loaded.
        """
        for port in (self.settings.port, self.settings.rest_api_port):
            _check_free(self.settings.host, port)
        try:
            self.manager.start()
            self._open()
        except BaseException:
            self.manager.stop(self.settings.drain_timeout_seconds)
            raise

    def stop(self) -> None:
        """Asks the server to stop, which `wait` then does. Safe to call from a signal handler."""
        self._stop.set()

    def wait(self) -> bool:
        """Waits until the server is asked to stop, then drains it; see `drain`."""
        self._stop.wait()
        return self.drain()

    def drain(self) -> bool:
        """Takes no more requests, answers those in flight (for `drain_timeout_seconds` at most), unloads the models.

        Returns:
            Whether all were answered; if not, some threads may still be computing.
        """
        self._stop.set()
        patience = self.settings.drain_timeout_seconds
        wait_for_grpc = self._grpc.stop(patience)
        if self._rest is not None:
            self._rest.stop()
        wait_for_grpc()
        return self.manager.stop(patience)

    def stop_on_signals(self) -> None:
        """Makes SIGTERM and SIGINT stop the server; a second one ends the process at once."""

        def handle(number: int, _: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    def _open(self) -> None:
        addresses = [f"{self.settings.host}:{self.settings.port}"] if self.settings.port else []
        if self.settings.grpc_socket_path:
            addresses.append(f"{UNIX}{self.settings.grpc_socket_path}")
        ports = self._grpc.start(addresses)
        self.port = ports[0] if self.settings.port else 0
        if self.settings.rest_api_port:
            self._open_rest()

    def _open_rest(self) -> None:
        # A gRPC-only server does not load the HTTP library.
        from serving.rest.api import RestApi
        from serving.rest.http_port import RestServer

        api = RestApi(self._plane)
        rest = RestServer(
            self.settings, api, self.metrics, self.ready, self.token, self.metrics_path, self._rest_context
        )
        self.rest_api_port = rest.start()
        self._rest = rest


def metrics_path(settings: ServerSettings) -> str | None:
    """The path of the metrics on the REST port according to `monitoring_config_file`, or None.

    Raises:
        ServingError: INVALID_ARGUMENT, the file is invalid.
    """
    if settings.monitoring_config_file is None:
        return None
    config = read_text_proto(settings.monitoring_config_file, "monitoring_config_file", MonitoringConfig())
    if not config.prometheus_config.enable:
        return None
    return str(config.prometheus_config.path) or DEFAULT_PATH


def _check_free(host: str, port: int) -> None:
    """Refuses a taken port before minutes are spent on loading models."""
    if not port:
        return
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServingError(Code.UNAVAILABLE, f"cannot listen on {host}:{port}: {error.strerror}") from error
