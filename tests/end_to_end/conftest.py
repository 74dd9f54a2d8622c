"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import postgres
import pytest
import yaml
from copied_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh copy of the project, in which nothing has run yet."""
    return Project(tmp_path / "project")


@pytest.fixture
def server_environment(postgres_server: postgres.Server, postgres_password: None, tmp_path: Path) -> Path:
    """An environment file with an empty PostgreSQL database as store, and with its folders beside it."""
    store = postgres_server.new_database().model_dump()
    roots = {f"{name}_root": str(tmp_path / name) for name in ("pipeline", "serving", "log")}
    path = tmp_path / "server.yaml"
    path.write_text(yaml.safe_dump({"metadata_store": {"postgresql": store}, **roots}))
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test in this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
