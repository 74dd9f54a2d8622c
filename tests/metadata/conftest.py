"""The metadata store's tests run on an SQLite file and on PostgreSQL."""

from __future__ import annotations

import pytest

from pipeline.plan.environment import Environment


@pytest.fixture
def places(both_places: Environment) -> Environment:
    """An environment with each kind of store."""
    return both_places
