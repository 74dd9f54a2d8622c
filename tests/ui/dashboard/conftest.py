"""Fixtures of the dashboard's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_scene import small_site, write_runs
from store_builder import StoreBuilder

from pipeline.plan.environment import Environment
from ui.dashboard.site import Site


@pytest.fixture
def places(sqlite_places: Environment) -> Environment:
    """An SQLite file; test_dashboard_postgres.py has the other kind."""
    return sqlite_places


@pytest.fixture
def shown(places: Environment) -> Site:
    """The site of `places`."""
    return small_site(places)


@pytest.fixture
def ids(builder: StoreBuilder, places: Environment, tmp_path: Path) -> dict[str, int]:
    """Two runs of `small`, and the ids of their artifacts."""
    return write_runs(builder, places, tmp_path / "files")
