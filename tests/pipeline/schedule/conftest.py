"""A project whose cluster is a stand-in."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from kfp_standin import PROJECT, Millrace, Standin
from task_scene import MILLRACE, RunTask, executor_input

from contracts.errors import ClusterError
from pipeline import cli
from pipeline.plan.environment import Environment
from pipeline.plan.recipe import Recipe
from pipeline.schedule.kubeflow import cluster, spec, task, tasks, watch

Specs = dict[Hashable, str]


@pytest.fixture(scope="session")
def specs() -> Specs:
    """The specs compiled so far."""
    return {}


@pytest.fixture
def compiles_anew() -> None:
    """For tests of compiling itself: nothing is taken from `specs`."""


@pytest.fixture(autouse=True)
def compiled_once(request: pytest.FixtureRequest, specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles each spec only once for all tests that merely use it, because the SDK is slow."""
    if "compiles_anew" in request.fixturenames:
        return
    compile_spec = spec.compile_spec

    def text(recipe: Recipe, environment: Environment, environment_name: str, overrides: Sequence[str]) -> str:
        # These checks run each time; the key is everything that the spec is compiled from, which the host is not.
        recipe_tasks = tasks.recipe_tasks(recipe, environment, environment_name)
        settings = tasks.check_environment(environment, environment_name)
        without_host = settings.model_dump_json(exclude={"host"})
        key = (recipe.name, recipe.settings.model_dump_json(), repr(recipe_tasks), without_host, tuple(overrides))
        if key not in specs:
            specs[key] = compile_spec(recipe, environment, environment_name, overrides)
            assert settings.host not in specs[key]
        return specs[key]

    monkeypatch.setattr(spec, "compile_spec", text)


@pytest.fixture
def standin() -> Iterator[Standin]:
    """Kubeflow Pipelines' API; every request and response must conform to the published document."""
    server = Standin().start()
    yield server
    server.stop()
    assert server.faults == []


@pytest.fixture
def no_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way to Kubernetes' API from here."""

    def refuse() -> None:
        raise ClusterError("no way to Kubernetes' API from here: no kubeconfig")

    monkeypatch.setattr(cluster, "connect", refuse)


@pytest.fixture
def millrace(project: Path, standin: Standin, no_kubernetes: None, monkeypatch: pytest.MonkeyPatch) -> Millrace:
    """Calls `millrace kubeflow` in `project`, whose environment `kubeflow` is the stand-in."""
    text = (PROJECT / "environments" / "kubeflow.yaml").read_text()
    (project / "environments" / "kubeflow.yaml").write_text(text.replace("http://localhost:8080", standin.url))
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    return lambda *words: CliRunner().invoke(cli.main, ["kubeflow", *words], prog_name="millrace")


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a `millrace` on the PATH writes the words that it was called with; it exits with code CODE."""
    program, log = tmp_path / "bin" / "millrace", tmp_path / "called"
    program.parent.mkdir()
    program.write_text(MILLRACE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("CALLED", str(log))
    monkeypatch.setenv("CODE", "0")
    monkeypatch.delenv(task.ATTEMPT_VARIABLE, raising=False)
    return log


@pytest.fixture
def environment_file(places: Environment, project: Path) -> str:
    path = project / "environments" / "tested.yaml"
    path.write_text(yaml.safe_dump(places.model_dump(mode="json", exclude_none=True)))
    return str(path)


@pytest.fixture
def run_task(tmp_path: Path, called: Path, environment_file: str) -> RunTask:
    """Runs a task of run `one` as its container would: `run_task("Trainer", set=["a=b"])`."""

    def run(name: str, **parameters: Any) -> Result:
        words = tasks.command_words(tasks.Work("small", name, "one", environment_file))
        text = executor_input(tmp_path, name, **parameters)
        return CliRunner().invoke(cli.main, ["kubeflow", "task", "--executor-input", text, "--", *words])

    return run
