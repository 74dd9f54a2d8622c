"""Loads the versions that are aspired, swaps them without a failed request, and unloads those that are not.

Two threads: one polls the base paths, one loads and unloads. A request takes only the lock under which versions are
looked up and counted; nobody holds that while a model loads or a folder is listed.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from serving import model_config, source
from serving.errors import Code, ServingError
from serving.settings import ModelConfig, ServerSettings
from serving.versions import Model, ModelRequest, State, Version, VersionStatus

if TYPE_CHECKING:
    from serving.servable import Servable

__all__ = ["Manager", "ModelRequest", "State", "VersionStatus"]

Loader = Callable[[str, int, Path], "Servable"]
log = logging.getLogger(__name__)


class Manager:
    """The models of one server.

    Args:
        settings: The server's settings.
        load: Loads one version: `load(name, version, path)`.
        clock: Seconds that only ever grow; decides when to try a failed load again.

    Raises:
        ServingError: INVALID_ARGUMENT, the settings name no models, or wrong ones.
    """

    def __init__(
        self, settings: ServerSettings, load: Loader | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._load = load or _session_loader(settings)
        self._clock = clock
        self._changed = threading.Condition()
        self._polling = threading.RLock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        configs = model_config.configured(settings)
        model_config.check(configs)
        self._models = {config.name: Model(config) for config in configs}

    def start(self, timeout: float | None = None) -> None:
        """Loads the models.

        Args:
            timeout: Seconds to wait for them; None for the setting `load_timeout_seconds`.

        Raises:
            ServingError: A model has no version that could be loaded; the message says which and why.
        """
        for name, work in (("loader", self._work), ("poller", self._poll)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self.poll_once()
        self._await_available(list(self._models), self._settings.load_timeout_seconds if timeout is None else timeout)

    def stop(self) -> None:
        """Unloads every version after its last request; returns when all are gone."""
        self._stopping.set()
        with self._changed:
            for model in self._models.values():
                model.aspire({})
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    @contextmanager
    def use(self, request: ModelRequest) -> Iterator[Servable]:
        """Lends a version, which is not unloaded before it is given back.

        Raises:
            ServingError: NOT_FOUND, it is not being served; INVALID_ARGUMENT, the label is unknown.
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
        """Returns the state of a model's versions, the highest first.

        Raises:
            ServingError: NOT_FOUND, there is no such model or version.
        """
        with self._changed:
            model = self._models.get(name)
            found = [] if model is None else model.statuses(version)
        if not found:
            what = f"any versions of model {name}" if version is None else f"version {version} of model {name}"
            raise ServingError(Code.NOT_FOUND, f"Could not find {what}")
        return found

    def ready(self) -> bool:
        """Whether every configured model has a version that answers, and the server is not stopping."""
        with self._changed:
            return not self._stopping.is_set() and all(
                model.available for model in self._models.values() if model.configured
            )

    def poll_once(self) -> None:
        """Looks once into every base path and decides what to load and to unload."""
        with self._polling:
            for model in [model for model in self._models.values() if model.configured]:
                self._poll_model(model)

    def reload(self, configs: Sequence[ModelConfig]) -> None:
        """Replaces the configuration: loads models that are new in it and unloads those it lacks.

        Args:
            configs: All models to serve from now on.

        Raises:
            ServingError: INVALID_ARGUMENT or FAILED_PRECONDITION, the configuration is refused and nothing has changed;
                UNKNOWN, a new model has no version that could be loaded.
        """
        model_config.check(configs)
        with self._polling:
            with self._changed:
                self._check_labels(configs)
                added = self._replace(configs)
                self._changed.notify_all()
            self.poll_once()
        self._await_available(added, self._settings.load_timeout_seconds)

    def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until the condition, which is asked at every change, holds; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def _find(self, request: ModelRequest) -> Version:
        model = self._models.get(request.name)
        number = request.version
        if request.label is not None:
            number = None if model is None else model.config.labels.get(request.label)
            if number is None:
                raise ServingError(Code.INVALID_ARGUMENT, f"Unrecognized servable version label: {request.label}")
        version = None if model is None else model.find(number)
        if version is None:
            wanted = f"Latest({request.name})" if number is None else f"Specific({request.name}, {number})"
            raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {wanted}")
        return version

    def _await_available(self, names: Sequence[str], timeout: float) -> None:
        models = [self._models[name] for name in names]
        with self._changed:
            self._changed.wait_for(lambda: all(model.settled for model in models), timeout)
            missing = [model for model in models if not model.available]
        if missing:
            raise ServingError(
                Code.UNKNOWN,
                f"{len(missing)} model(s) did not become available: {'; '.join(model.why() for model in missing)}",
            )

    def _check_labels(self, configs: Sequence[ModelConfig]) -> None:
        for config in configs:
            model = self._models.get(config.name)
            for label, number in config.labels.items():
                if model is not None and model.find(number) is not None:
                    continue
                moved = model is not None and model.config.labels.get(label, number) != number
                if moved or not self._settings.allow_version_labels_for_unavailable_models:
                    raise ServingError(
                        Code.FAILED_PRECONDITION,
                        f"Request to assign label to version {number} of model {config.name}, "
                        "which is not currently available for inference",
                    )

    def _replace(self, configs: Sequence[ModelConfig]) -> list[str]:
        kept = {config.name for config in configs}
        for name, model in self._models.items():
            if name not in kept:
                model.configured = False
                model.aspire({})
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
        try:
            versions = source.aspired(model.config)
        except ServingError as error:
            log.warning("%s", error.message)
            model.poll_error = error
            return
        with self._changed:
            model.poll_error = None
            if not self._stopping.is_set():
                model.aspire(versions)
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            job()

    def _next_job(self) -> Callable[[], None] | None:
        with self._changed:
            while True:
                for model in self._models.values():
                    if (version := model.to_close()) is not None:
                        version.in_hand = True
                        return functools.partial(self._close_one, model, version)
                now = self._clock()
                for model in self._models.values():
                    if (version := model.to_load(now)) is not None:
                        version.in_hand, version.state = True, State.LOADING
                        return functools.partial(self._load_one, model, version)
                if self._stopping.is_set() and all(model.gone for model in self._models.values()):
                    return None
                retries = [at for model in self._models.values() if (at := model.next_retry()) is not None]
                self._changed.wait(max(0.0, min(retries) - now) if retries else None)

    def _load_one(self, model: Model, version: Version) -> None:
        name = model.config.name
        servable, error = None, None
        try:
            servable = self._load(name, version.number, version.path)
            log.info("Loaded %s version %d from %s.", name, version.number, version.path)
        except ServingError as refusal:
            error = refusal
            log.warning("Version %d of %s cannot be loaded: %s", version.number, name, refusal.message)
        except Exception as surprise:
            # Whatever a model does while it loads, the models that answer must go on answering.
            error = ServingError(Code.INTERNAL, f"{type(surprise).__name__}: {surprise}")
            log.exception("Version %d of %s cannot be loaded.", version.number, name)
        with self._changed:
            version.in_hand = False
            if error is not None:
                pause = self._settings.load_retry_interval_micros / 1e6
                version.failed(error, self._settings.max_num_load_retries, self._clock() + pause)
            else:
                version.servable, version.state, version.error = servable, State.AVAILABLE, None
            model.retire()
            self._changed.notify_all()

    def _close_one(self, model: Model, version: Version) -> None:
        servable, version.servable = version.servable, None
        if servable is not None:
            servable.close()
        log.info("Unloaded %s version %d.", model.config.name, version.number)
        with self._changed:
            version.in_hand, version.state = False, State.END
            self._changed.notify_all()


def _session_loader(settings: ServerSettings) -> Loader:
    # TensorFlow takes seconds to import: that begins with the server, not with this module.
    from serving import servable

    both = settings.tensorflow_session_parallelism
    return functools.partial(
        servable.load,
        warm_up=settings.enable_model_warmup,
        tags=settings.saved_model_tags.split(","),
        intra_op_parallelism=settings.tensorflow_intra_op_parallelism or both,
        inter_op_parallelism=settings.tensorflow_inter_op_parallelism or both,
    )
