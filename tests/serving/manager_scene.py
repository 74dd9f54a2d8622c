"""A manager whose versions compute nothing, and whose loads and clock the test controls."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving.errors import Code, ServingError
from serving.models.configuration import models_to_proto
from serving.models.manager import Manager, ModelRequest
from serving.settings import ModelConfig, ServerSettings

PATIENCE = 20.0


@dataclasses.dataclass
class Fake:
    """A loaded version that computes nothing."""

    name: str
    version: int
    path: Path
    closed: bool = False

    def close(self) -> None:
        self.closed = True


class FakeLoads:
    """Loads fakes; some fail, some wait until the test releases them.

    Attributes:
        done: The loads attempted, in order, as (name, version).
        broken: Version -> the exception that its load raises.
        gates: Version -> the event that its load waits for.
        begun: Set when a version with a gate begins to load.
        fakes: All fakes that were loaded.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.broken: dict[int, Exception] = {}
        self.gates: dict[int, threading.Event] = {}
        self.begun = threading.Event()
        self.fakes: list[Fake] = []

    def __call__(self, name: str, version: int, path: Path) -> Any:
        self.done.append((name, version))
        if version in self.gates:
            self.begun.set()
            assert self.gates[version].wait(PATIENCE)
        if version in self.broken:
            raise self.broken[version]
        self.fakes.append(Fake(name, version, path))
        return self.fakes[-1]


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclasses.dataclass
class Scene:
    """Managers over folders of versions, with their fakes and their clock."""

    base: Path
    loads: FakeLoads
    clock: Clock
    managers: list[Manager]

    def versions(self, *numbers: int | str, model: str = "m") -> None:
        """Makes the base path hold exactly these versions."""
        folder = self.base / model
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name not in map(str, numbers):
                path.rmdir()
        for number in numbers:
            (folder / str(number)).mkdir(exist_ok=True)

    def config(self, model: str = "m", **options: Any) -> ModelConfig:
        return ModelConfig(model, self.base / model, **options)

    def manager(self, *configs: ModelConfig, **settings: Any) -> Manager:
        options = {"model_base_path": self.base / "m", "model_name": "m", "file_system_poll_wait_seconds": 0}
        if configs:
            file = self.base / "models.config"
            file.write_text(str(models_to_proto(configs)))
            options = {"model_config_file": file, "file_system_poll_wait_seconds": 0}
        manager = Manager(ServerSettings(**{**options, **settings}), self.loads, self.clock)
        self.managers.append(manager)
        return manager

    def started(self, *configs: ModelConfig, **settings: Any) -> Manager:
        manager = self.manager(*configs, **settings)
        manager.start(PATIENCE)
        return manager


def states(manager: Manager, model: str = "m") -> dict[int, str]:
    return {status.version: status.state.name for status in manager.statuses(model)}


def until(manager: Manager, expected: dict[int, str], model: str = "m") -> None:
    manager.wait_for(lambda: states(manager, model) == expected, PATIENCE)
    assert states(manager, model) == expected


def answering(manager: Manager, **request: Any) -> int:
    with manager.use(ModelRequest("m", **request)) as servable:
        return servable.version


def refused(act: Callable[[], object]) -> tuple[Code, str]:
    with pytest.raises(ServingError) as caught:
        act()
    return caught.value.code, caught.value.message


def failures(manager: Manager, version: int) -> bool:
    return manager.statuses("m", version)[0].error is not None
