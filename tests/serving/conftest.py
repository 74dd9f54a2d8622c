"""Fixtures that make SavedModels and folders of versions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny_models
from manager_scene import PATIENCE, Clock, FakeLoads, Scene

from serving.models.servable import Servable, load


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of SavedModels: `half_plus_1` and `half_plus_2`, `echo`, `slow` and `tf1`."""
    folder = tmp_path_factory.mktemp("saved_models")
    for offset in (1, 2):
        tiny_models.write_half_plus(folder / f"half_plus_{offset}", float(offset))
    tiny_models.write_module(folder / "echo", tiny_models.Echo())
    tiny_models.write_module(folder / "slow", tiny_models.Slow())
    tiny_models.write_tf1(folder / "tf1", folder / "words.txt")
    return folder


@pytest.fixture
def push(saved_models: Path, tmp_path: Path) -> Callable[..., Path]:
    """Pushes a version as a pusher should, by a rename: `push(2, "half_plus_2")` returns its folder."""
    base_path = tmp_path / "models"

    def push_version(version: int | str, saved_model: str = "half_plus_1", base_path: Path = base_path) -> Path:
        base_path.mkdir(parents=True, exist_ok=True)
        shutil.copytree(saved_models / saved_model, base_path / "incoming")
        return (base_path / "incoming").rename(base_path / str(version))

    return push_version


@pytest.fixture
def loaded(saved_models: Path) -> Iterator[Callable[..., Servable]]:
    """Loads a SavedModel by its name and closes it after the test: `loaded("echo")`."""
    servables: list[Servable] = []

    def load_one(saved_model: str, **options: object) -> Servable:
        servables.append(load(saved_model, 1, saved_models / saved_model, **options))  # type: ignore[arg-type]
        return servables[-1]

    yield load_one
    for servable in servables:
        servable.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, FakeLoads(), Clock(), [])
    yield scene
    for gate in scene.loads.gates.values():
        gate.set()
    for manager in scene.managers:
        assert manager.stop(PATIENCE)
