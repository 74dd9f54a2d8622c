"""Finds the versions in a base path, and has the thread that loads and closes them one at a time."""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from serving.errors import Code, ServingError
from serving.models import configuration
from serving.models.versions import Model, State, Version
from serving.settings import All, Latest, ModelConfig, ServerSettings, VersionPolicy

if TYPE_CHECKING:
    from serving.models.servable import Servable


LARGEST_VERSION = 2**63 - 1
log = logging.getLogger(__name__)


def aspired_versions(config: ModelConfig) -> dict[int, Path]:
    """Finds the versions to serve.

    Args:
        config: The model.

    Returns:
        Version -> folder, for each version to serve; empty if the base path is.

    Raises:
        ServingError: NOT_FOUND, the base path cannot be listed. That does not mean that nothing should be served: a
            mount may be absent for a moment.
    """
    try:
        versions = _versions_in(config.base_path)
    except OSError as error:
        raise ServingError(
            Code.NOT_FOUND,
            f"Could not find base path {config.base_path} for servable {config.name} with error {error.strerror}",
        ) from error
    return {version: versions[version] for version in _chosen(config.policy, versions)}


def _versions_in(base_path: Path) -> dict[int, Path]:
    versions: dict[int, Path] = {}
    for path in sorted(base_path.iterdir()):
        # "²" is a digit, but int() refuses it; "00000123" is version 123.
        if not (path.name.isascii() and path.name.isdecimal() and path.is_dir()):
            continue
        version = int(path.name)
        if version > LARGEST_VERSION:
            continue
        if version in versions:
            log.warning("Version %d will be loaded from %s; %s will be ignored.", version, versions[version], path)
            continue
        versions[version] = path
    return versions


def _chosen(policy: VersionPolicy, versions: Mapping[int, Path]) -> list[int]:
    if isinstance(policy, All):
        return sorted(versions)
    if isinstance(policy, Latest):
        return sorted(versions)[-policy.num_versions :]
    return sorted(set(policy.versions) & versions.keys())


Load = Callable[[str, int, Path], "Servable"]
LOADING_SWITCH_SECONDS = 1e-5


class Loader:
    """Closes the versions that are out of service and loads those that are aspired.

    Args:
        models: The models by name; others may be added while it works.
        changed: Guards the models. Held while looking for work, never while doing it.
        settings: How often to retry, and how long to wait between retries.
        load: Loads one version: `load(name, version, path)`.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        changed: threading.Condition,
        settings: ServerSettings,
        load: Load,
        clock: Callable[[], float],
    ) -> None:
        self._models = models
        self._changed = changed
        self._retries = settings.max_num_load_retries
        self._pause = settings.load_retry_interval_micros / 1e6
        self._load = load
        self._clock = clock
        self._stopping = False

    def run(self) -> None:
        """Works until `stop` has been called and all versions are closed."""
        while (job := self._next_job()) is not None:
            job()

    def stop(self) -> None:
        """Makes `run` return once nothing is loaded any more. The caller holds `changed`."""
        self._stopping = True
        self._changed.notify_all()

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
                if self._stopping and all(model.unloaded for model in self._models.values()):
                    return None
                retries = [at for model in self._models.values() if (at := model.next_retry()) is not None]
                self._changed.wait(max(0.0, min(retries) - now) if retries else None)

    def _load_one(self, model: Model, version: Version) -> None:
        name = model.config.name
        servable, error = None, None
        try:
            with _requests_first():
                servable = self._load(name, version.number, version.path)
            log.info("Loaded %s version %d from %s.", name, version.number, version.path)
        except ServingError as refusal:
            error = refusal
            log.warning("Version %d of %s cannot be loaded: %s", version.number, name, refusal.message)
        except Exception as surprise:
            # Whatever a model does while it loads, the models in service must go on answering.
            error = ServingError(Code.INTERNAL, f"{type(surprise).__name__}: {surprise}")
            log.exception("Version %d of %s cannot be loaded.", version.number, name)
        with self._changed:
            version.in_hand = False
            if error is not None:
                version.record_failure(error, self._retries, self._clock() + self._pause)
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


@contextmanager
def _requests_first() -> Iterator[None]:
    """Lets requests go first while a version loads.

    Loading is mostly Python, and a thread that returns from a TensorFlow or system call waits for the thread that runs
    Python: by default five milliseconds each time, several times per request.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(LOADING_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def session_load(settings: ServerSettings) -> Load:
    """Returns a function that loads a SavedModel into a Session with these settings.

    Raises:
        ServingError: INVALID_ARGUMENT, the batching settings are invalid.
    """
    # TensorFlow takes seconds to import: only when a server starts, not with this module.
    from serving.models import servable

    both = settings.tensorflow_session_parallelism
    common = configuration.configured_batching(settings)

    def load(name: str, version: int, path: Path) -> Servable:
        batching = common
        if common is not None and settings.enable_per_model_batching_parameters:
            batching = configuration.batching_of_model(path, common)
        return servable.load(
            name,
            version,
            path,
            warm_up=settings.enable_model_warmup,
            tags=settings.saved_model_tags.split(","),
            intra_op_parallelism=settings.tensorflow_intra_op_parallelism or both,
            inter_op_parallelism=settings.tensorflow_inter_op_parallelism or both,
            batching=batching,
        )

    return load
