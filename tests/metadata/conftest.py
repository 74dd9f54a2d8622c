"""The metadata store's tests ask the same of an SQLite file and of PostgreSQL."""

from __future__ import annotations

import pytest

from pipeline.plan.environment import Environment


@pytest.fixture
def places(both_places: Environment) -> Environment:
    """An environment with each kind of store."""
    return both_places
