"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh copy of the project, with nothing run yet."""
    return Project(tmp_path / "project")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test in this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
