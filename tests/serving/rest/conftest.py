"""A REST port that serves the arithmetic model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import arithmetic_model
import pytest
from rest_scene import Rest, started


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("arithmetic")
    arithmetic_model.save(base_path)
    return base_path


@pytest.fixture(scope="module")
def rest(base_path: Path) -> Iterator[Rest]:
    yield from started(base_path)
