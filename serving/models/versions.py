"""The state of a model's versions, and what should happen to them next. No threads, no files, no TensorFlow."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from serving.errors import Code, ServingError
from serving.settings import ModelConfig

if TYPE_CHECKING:
    from serving.models.servable import Servable


# How many ended versions a model remembers, to report their states.
MOST_ENDED = 100


@dataclasses.dataclass(frozen=True)
class ModelRequest:
    """The version that a request asks for, by number or label; the latest if it gives neither.

    Attributes:
        name: The model's name.
        version: The version's number.
        label: A label from the configuration; takes precedence over `version`.
    """

    name: str
    version: int | None = None
    label: str | None = None


class State(enum.Enum):
    """The state of a version; the values are those of ModelVersionStatus."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """The state of a version and, if it failed, why."""

    version: int
    state: State
    error: ServingError | None


@dataclasses.dataclass(eq=False)
class Version:
    """One version, from the discovery of its folder until after it is unloaded.

    Attributes:
        number: Its number.
        path: Its folder.
        state: Its state; LOADING also between two attempts.
        aspired: Whether the policy asks for it.
        error: Why the last attempt to load it failed.
        failures: How many attempts failed.
        retry_at: When to try next, on the manager's clock.
        in_hand: Whether the loader is loading or closing it now.
        servable: The loaded version.
        handles: How many requests use it.
    """

    number: int
    path: Path
    state: State = State.START
    aspired: bool = True
    error: ServingError | None = None
    failures: int = 0
    retry_at: float = 0.0
    in_hand: bool = False
    servable: Servable | None = None
    handles: int = 0

    def record_failure(self, error: ServingError, retries: int, retry_at: float) -> None:
        """Records a failed attempt; the version ends if it was the last."""
        self.error = error
        self.failures += 1
        self.retry_at = retry_at
        if self.failures > retries or not self.aspired:
            self.state = State.END


class Model:
    """The versions of one model.

    Attributes:
        config: Its configuration.
        configured: Whether it is still in the configuration.
        poll_error: Why its base path could not be listed.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.configured = True
        self.poll_error: ServingError | None = None
        self._versions: list[Version] = []
        self._serving: dict[int, Version] = {}
        self._latest: Version | None = None

    @property
    def available(self) -> bool:
        """Whether a version is in service."""
        return self._latest is not None

    @property
    def settled(self) -> bool:
        """Whether waiting is over: a version and all labelled ones are available, or all that should be have failed."""
        aspired = [version for version in self._versions if version.aspired]
        if aspired and all(version.state is State.END for version in aspired):
            return True
        labelled = [version for version in aspired if version.number in self.config.labels.values()]
        return self.available and all(version.state in (State.AVAILABLE, State.END) for version in labelled)

    @property
    def unloaded(self) -> bool:
        """Whether no version is loaded, being loaded or being closed."""
        return all(version.state is State.END for version in self._versions)

    def find(self, number: int | None) -> Version | None:
        """Returns the version in service with this number, or the highest one in service."""
        return self._latest if number is None else self._serving.get(number)

    def statuses(self, number: int | None) -> list[VersionStatus]:
        """Returns the states of one version or of all, highest first."""
        latest = {version.number: version for version in self._versions if number in (None, version.number)}
        # A new version with the same number may be loading while the old one is still in service.
        latest.update({key: version for key, version in self._serving.items() if key in latest})
        return [VersionStatus(key, latest[key].state, latest[key].error) for key in sorted(latest, reverse=True)]

    def aspire(self, paths: Mapping[int, Path]) -> None:
        """Sets which versions should be served, and decides what to unload.

        A version that failed for good is tried again once its folder has been away; one being unloaded is loaded anew.
        """
        current = {(v.number, v.path): v for v in self._versions if v.state is not State.UNLOADING and _is_current(v)}
        aspired_paths = set(paths.items())
        for version in self._versions:
            version.aspired = current.get((version.number, version.path)) is version and (
                (version.number, version.path) in aspired_paths
            )
        fresh = [Version(number, path) for number, path in paths.items() if (number, path) not in current]
        replaced = {version.number for version in fresh}
        remaining = [version for version in self._versions if not _can_be_dropped(version, replaced)]
        ended = [version for version in remaining if version.state is State.END and not version.aspired]
        too_many = set(ended[:-MOST_ENDED])
        self._versions = [version for version in remaining if version not in too_many] + fresh
        self.retire()

    def retire(self) -> None:
        """Takes versions that are not aspired out of service, unless no other could answer."""
        aspired = [version for version in self._versions if version.aspired]
        if not aspired or any(version.state is State.AVAILABLE for version in aspired):
            for version in self._versions:
                if version.state is State.AVAILABLE and not version.aspired:
                    version.state = State.UNLOADING
        answering = [version for version in self._versions if version.state is State.AVAILABLE]
        self._serving = {version.number: version for version in sorted(answering, key=lambda version: version.aspired)}
        self._latest = self._serving[max(self._serving)] if self._serving else None

    def to_close(self) -> Version | None:
        """Returns a version that can be closed: it is out of service, and no request uses it."""
        for version in self._versions:
            if version.state is State.UNLOADING and not version.handles and not version.in_hand:
                return version
        return None

    def to_load(self, now: float) -> Version | None:
        """Returns the highest version that is due to be loaded."""
        return max(
            (version for version in self._waiting() if version.retry_at <= now),
            key=lambda version: version.number,
            default=None,
        )

    def next_retry(self) -> float | None:
        """Returns when the next attempt to load is due."""
        return min((version.retry_at for version in self._waiting()), default=None)

    def why(self) -> str:
        """Says why no version is in service."""
        name, base_path = self.config.name, self.config.base_path
        if self.poll_error is not None:
            return f"{name}: {self.poll_error.message}"
        aspired = sorted((v for v in self._versions if v.aspired), key=lambda version: version.number)
        if not aspired:
            return (
                f"{name}: no version to serve in {base_path}, expected folders named by integers, such as {base_path}/1"
            )
        return f"{name}: " + ", ".join(
            f"version {v.number} " + ("is still loading" if v.error is None else f"failed: {v.error.message}")
            for v in aspired
        )

    def _waiting(self) -> list[Version]:
        states = (State.START, State.LOADING)
        return [v for v in self._versions if v.state in states and v.aspired and not v.in_hand]


def check_labels(configs: Sequence[ModelConfig], models: Mapping[str, Model], allow_unavailable: bool) -> None:
    """Refuses labels of versions that are not in service.

    Args:
        configs: The new configuration.
        models: The current models.
        allow_unavailable: Whether a new label may point to a version that is not in service.

    Raises:
        ServingError: FAILED_PRECONDITION, a label points to a version that is not in service.
    """
    for config in configs:
        model = models.get(config.name)
        for label, number in config.labels.items():
            if model is not None and model.find(number) is not None:
                continue
            moved = model is not None and model.config.labels.get(label, number) != number
            if moved or not allow_unavailable:
                raise ServingError(
                    Code.FAILED_PRECONDITION,
                    f"Request to assign label to version {number} of model {config.name}, "
                    "which is not currently available for inference",
                )


def _is_current(version: Version) -> bool:
    return version.state is not State.END or version.aspired


def _can_be_dropped(version: Version, replaced: set[int]) -> bool:
    if version.state is State.END:
        return version.number in replaced
    return not version.aspired and not version.in_hand and version.state in (State.START, State.LOADING)
