"""The files of a small SavedModel, and a serving folder whose clock stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pusher_helpers import NOW, ORIGIN

from components.pusher import versions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a graph and its variables."""
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables" / "data").write_text("numbers")
    return folder


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The serving folder; the clock stands still."""
    monkeypatch.setattr(versions.time, "time", lambda: NOW + 0.9)
    return tmp_path / "serving" / "small"


@pytest.fixture
def push(model: Path, base: Path) -> Callable[..., int]:
    """Pushes a model whose graph is the given text: `push("graph")` returns the version."""

    def push_one(graph: str = "graph", keep: int = 5) -> int:
        (model / "saved_model.pb").write_text(graph)
        return versions.push_version(model, base, keep, ORIGIN)[1].version

    return push_one
