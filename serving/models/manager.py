"""Loads the versions that are aspired, swaps them without a failed request, and unloads the others.

There are two threads: one polls the base paths, one loads and unloads; a third polls the configuration file if asked
to. A request takes only the lock under which versions are looked up and counted, which is never held while a model
loads or a folder is listed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from serving.errors import Code, ServingError, invalid
from serving.models import configuration, loader
from serving.models.loader import Load, Loader, session_load
from serving.models.versions import Model, ModelRequest, State, Version, VersionStatus, check_labels
from serving.settings import ModelConfig, ServerSettings

if TYPE_CHECKING:
    from serving.models.servable import Servable

__all__ = ["Manager", "ModelRequest", "State", "VersionStatus"]

log = logging.getLogger(__name__)


class Manager:
    """The models of one server.

    Args:
        settings: The server's settings.
        load: Loads one version: `load(name, version, path)`.
        clock: A monotonic clock in seconds, which decides when to retry a failed load.

    Raises:
        ServingError: INVALID_ARGUMENT, the settings name no models or invalid ones.
    """

    def __init__(
        self, settings: ServerSettings, load: Load | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        configs = configuration.configured_models(settings)
        configuration.check_models(configs)
        self._settings = settings
        self._configs: Sequence[ModelConfig] = configs
        self._models = {config.name: Model(config) for config in configs}
        self._changed = threading.Condition()
        self._polling = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._loader = Loader(self._models, self._changed, settings, load or session_load(settings), clock)

    def start(self, timeout: float | None = None) -> None:
        """Loads the models.

        Args:
            timeout: Seconds to wait for them; None means the setting `load_timeout_seconds`.

        Raises:
            ServingError: UNKNOWN, a model has no version that could be loaded; the message says which and why.
                FAILED_PRECONDITION, a label points to a version that is not available.
        """
        work: dict[str, Callable[[], None]] = {"serving-loader": self._loader.run}
        if self._settings.file_system_poll_wait_seconds:
            work["serving-poller"] = self._poll
        if self._settings.model_config_file is not None and self._settings.model_config_file_poll_wait_seconds:
            work["serving-config-poller"] = self._poll_config
        for name, target in work.items():
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self.poll_once()
        self._await_available(list(self._models), self._settings.load_timeout_seconds if timeout is None else timeout)
        with self._changed:
            check_labels(self._configs, self._models, self._settings.allow_version_labels_for_unavailable_models)

    def stop(self, timeout: float | None = None) -> bool:
        """Takes every version out of service and unloads it after its last request.

        Args:
            timeout: Seconds to wait for that; None waits as long as it takes.

        Returns:
            Whether all versions have been unloaded.
        """
        self._stopping.set()
        with self._changed:
            for model in self._models.values():
                model.aspire({})
            self._loader.stop()
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @contextmanager
    def use(self, request: ModelRequest) -> Iterator[Servable]:
        """Lends a version, which is not unloaded until the context ends.

        Raises:
            ServingError: NOT_FOUND, the version is not being served; INVALID_ARGUMENT, the label is unknown.
        """
        with self._changed:
            version = self._find(request)
            version.handles += 1
        try:
            assert version.servable is not None  # noqa: S101 - what is available is loaded
            yield version.servable
        finally:
            with self._changed:
                version.handles -= 1
                if not version.handles and version.state is State.UNLOADING:
                    self._changed.notify_all()

    def statuses(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """Returns the states of a model's versions, highest first.

        Raises:
            ServingError: NOT_FOUND, there is no such model or version.
        """
        with self._changed:
            model = self._models.get(name)
            statuses = [] if model is None else model.statuses(version)
        if not statuses:
            missing = f"any versions of model {name}" if version is None else f"version {version} of model {name}"
            raise ServingError(Code.NOT_FOUND, f"Could not find {missing}")
        return statuses

    def ready(self) -> bool:
        """Whether every configured model has an available version, and the server is not stopping."""
        with self._changed:
            return not self._stopping.is_set() and all(
                model.available for model in self._models.values() if model.configured
            )

    def poll_once(self) -> None:
        """Lists every base path once and decides what to load and unload."""
        with self._polling:
            for model in [model for model in self._models.values() if model.configured]:
                self._poll_model(model)

    def reload(self, configs: Sequence[ModelConfig]) -> None:
        """Replaces the configuration: loads the models that are new and unloads those that are no longer in it.

        Args:
            configs: All models to serve from now on.

        Raises:
            ServingError: INVALID_ARGUMENT or FAILED_PRECONDITION, the configuration is refused and nothing has changed;
                UNKNOWN, a new model has no version that could be loaded.
        """
        configuration.check_models(configs)
        with self._polling, self._changed:
            check_labels(configs, self._models, self._settings.allow_version_labels_for_unavailable_models)
            added = self._replace(configs)
            self._changed.notify_all()
        self.poll_once()
        self._await_available(added, self._settings.load_timeout_seconds)

    def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until the condition, which is evaluated at every change, holds; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def _find(self, request: ModelRequest) -> Version:
        model = self._models.get(request.name)
        number = request.version
        if request.label is not None:
            number = None if model is None else model.config.labels.get(request.label)
            if number is None:
                raise invalid(f"Unrecognized servable version label: {request.label}")
        version = None if model is None else model.find(number)
        if version is None:
            description = f"Latest({request.name})" if number is None else f"Specific({request.name}, {number})"
            raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {description}")
        return version

    def _await_available(self, names: Sequence[str], timeout: float) -> None:
        models = [self._models[name] for name in names]
        with self._changed:
            self._changed.wait_for(lambda: self._stopping.is_set() or all(model.settled for model in models), timeout)
            missing = [model for model in models if not model.available]
        if missing:
            raise ServingError(
                Code.UNKNOWN,
                f"{len(missing)} model(s) did not become available: {'; '.join(model.why() for model in missing)}",
            )

    def _replace(self, configs: Sequence[ModelConfig]) -> list[str]:
        names = {config.name for config in configs}
        for name, model in self._models.items():
            if name not in names:
                model.configured = False
                model.aspire({})
        self._configs = list(configs)
        added = []
        for config in configs:
            old = self._models.get(config.name)
            if old is None or not old.configured:
                added.append(config.name)
            if old is None:
                self._models[config.name] = Model(config)
            else:
                old.config, old.configured = config, True
        return added

    def _poll(self) -> None:
        while not self._stopping.wait(self._settings.file_system_poll_wait_seconds):
            self.poll_once()

    def _poll_model(self, model: Model) -> None:
        error, versions = None, {}
        try:
            versions = loader.aspired_versions(model.config)
        except ServingError as failure:
            error = failure
            if model.poll_error is None or model.poll_error.message != error.message:
                log.warning("%s", error.message)
        with self._changed:
            model.poll_error = error
            if error is None and not self._stopping.is_set():
                model.aspire(versions)
            self._changed.notify_all()

    def _poll_config(self) -> None:
        while not self._stopping.wait(self._settings.model_config_file_poll_wait_seconds):
            self.reload_file()

    def reload_file(self) -> None:
        """Reads `model_config_file` again; if it is invalid, logs why and keeps the current configuration."""
        try:
            configs = configuration.configured_models(self._settings)
            if configs != self._configs:
                self.reload(configs)
        except ServingError as error:
            log.error("The model configuration was not reloaded: %s", error.message)
