"""Fixtures for tests that read a run's page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_scene import GRAPH, Page, Scene
from store_builder import StoreBuilder

from metadata.queries import Queries
from pipeline.plan.environment import Environment
from ui.report import page
from ui.report.source import Surroundings

Report = Callable[..., Page]


@pytest.fixture
def places(sqlite_places: Environment) -> Environment:
    """One kind of store is enough here: other tests compare the kinds."""
    return sqlite_places


@pytest.fixture
def scene(builder: StoreBuilder, tmp_path: Path) -> Scene:
    """An empty store to put runs in."""
    return Scene(builder, tmp_path / "artifacts")


@pytest.fixture
def report(places: Environment, tmp_path: Path) -> Report:
    """Writes the report of a run and reads it: `report("small-1", served="…")`; the keywords are its surroundings'."""

    def write(run_id: str, **surroundings: Any) -> Page:
        store = Queries.open_sqlite(places.metadata_path)
        run = store.run(run_id) if store else None
        assert store is not None
        assert run is not None
        path = tmp_path / "report.html"
        page.write(store, run, Surroundings(**{"graph": GRAPH} | surroundings), path)
        return Page(path.read_text(encoding="utf-8"))

    return write
