"""Fixtures for tests that run a pipeline without TFX."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from pipeline import cli
from pipeline.plan import nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.recipe import Recipe
from pipeline.run import local, progress
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace

RunSmall = Callable[..., local.Run]
Millrace = Callable[..., Result]


@pytest.fixture
def small(project: object) -> Recipe:
    """The recipe `small` of `project`."""
    return recipe.load("small")


@pytest.fixture
def run_small(small: Recipe, places: Environment) -> RunSmall:
    """Runs `small` in `places`: `run_small(force=True)`; the keywords are a request's."""

    def run(**changes: object) -> local.Run:
        whole = {"recipe": "small", "overrides": (), "environment": "local", "run_id": "small-1", "span": None}
        view = progress.View(Console(file=io.StringIO()), "small", nodes.NODES)
        request = Request.model_validate(whole | changes)
        return local.run(RunContext(small, Workplace(places), small.find_inputs(), request), view)

    return run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs for which a worker would have been started; none is started."""
    seen: list[str] = []

    def watch(context: RunContext, _view: progress.View, *_worker: object) -> local.Run:
        seen.append(context.run_id)
        return local.Run(context.run_id, {}, new=True)

    monkeypatch.setattr(local, "_started_worker", lambda _context: contextlib.nullcontext(()))
    monkeypatch.setattr(local, "_watch", watch)
    return seen


@pytest.fixture
def env(places: Environment, tmp_path: Path) -> str:
    """An environment file of `places`."""
    path = tmp_path / "places.yaml"
    path.write_text(places.model_dump_json())
    return str(path)


@pytest.fixture
def millrace(project: Path, places: Environment, monkeypatch: pytest.MonkeyPatch) -> Millrace:
    """Calls the command line in `project`, with an environment file whose paths are in the test's folder."""
    environment = places.model_dump(mode="json")
    (project / "environments" / "local.yaml").write_text(yaml.safe_dump(environment))

    monkeypatch.chdir(project)

    def call(*words: str) -> Result:
        return CliRunner().invoke(cli.main, list(words), prog_name="millrace")

    return call
