"""The wheel in a fresh environment, and a project elsewhere, which is found from any folder in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
import tfx
import yaml

from metadata.store import Store
from pipeline.schedule.kubeflow import steps, tasks

SOURCE = Path(__file__).resolve().parents[2]
BUILT_FROM = ("components", "contracts", "environments", "flink", "metadata", "pipeline", "recipes", "serving", "ui")
TRIPS = Path(tfx.__file__).parent / "examples" / "chicago_taxi_pipeline" / "data" / "simple" / "data.csv"
NO_BARS = "evaluator.metrics={AUC: {lower_bound: 0.0}}"

Millrace = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `make wheel` builds it."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in BUILT_FROM:
        shutil.copytree(SOURCE / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("LICENSE", "README.md", "MANIFEST.in", "pyproject.toml", "setup.py"):
        shutil.copy(SOURCE / name, source)
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(made), str(source))
    [path] = made.iterdir()
    return path


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`millrace` in an environment with only our wheel; it borrows all other packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    pip("--python", str(python), "install", "--no-index", str(wheel))
    # Each line adds one folder; .pth files in it, such as the clone's editable install, are not followed.
    Path(packages, "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "millrace"


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-m", "pip", "--quiet", *words, "--no-deps"], check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one recipe over 1,500 trips and no schema yet; nothing in it is a Python package."""
    folder = tmp_path / "project"
    recipe = folder / "recipes" / "trips"
    recipe.mkdir(parents=True)
    for name in ("features.py", "model.py"):
        shutil.copy(SOURCE / "recipes" / "taxi" / name, recipe)
    settings = yaml.safe_load((SOURCE / "recipes" / "taxi" / "recipe.yaml").read_text(encoding="utf-8"))
    settings["data"]["path"] = "trips.csv"
    (recipe / "recipe.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    rows = TRIPS.read_text(encoding="utf-8").splitlines(keepends=True)[:1501]
    (folder / "trips.csv").write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture
def millrace(program: Path) -> Millrace:
    """Calls the installed command in a folder."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], cwd=folder, env=environ, capture_output=True, text=True)

    return call


def test_outside_of_a_project_it_says_what_one_is(millrace: Millrace, tmp_path: Path) -> None:
    refused = millrace(tmp_path, "recipes")

    assert refused.returncode == 2
    assert f"no project: neither {tmp_path} nor a folder above it has recipes/NAME/recipe.yaml" in refused.stderr
    assert millrace(tmp_path, "--version").stdout == "millrace, version 0.1.0\n"


def test_a_project_elsewhere_runs_from_any_of_its_folders(millrace: Millrace, project: Path) -> None:
    inside = project / "recipes" / "trips"
    assert [line.split()[0] for line in millrace(inside, "recipes").stdout.splitlines()] == ["trips"]
    assert "path: trips.csv" in millrace(inside, "show", "trips").stdout

    finished = millrace(inside, "run", "trips", "--set", "trainer.train_steps=20", "--set", NO_BARS)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert [path.name for path in (project / "artifacts" / "serving" / "trips").iterdir()] != []
    assert sorted(path.name for path in project.iterdir()) == ["artifacts", "recipes", "trips.csv"]

    store = Store.open_sqlite(project / "artifacts" / "metadata.sqlite")
    assert store is not None
    trained = store.node_runs("trips", store.run_ids("trips")[0])["Trainer"]
    code = str(trained.properties["fingerprint"])
    assert "recipes/trips/model.py" in code
    assert "components/trainer/run.py" in code
    assert "site-packages" not in code

    again = millrace(project, "run", "trips", "--set", "trainer.train_steps=20", "--set", NO_BARS)
    assert "up to date" in again.stdout.lower()


def test_the_tasks_on_kubeflow_work_in_the_projects_folder(millrace: Millrace, project: Path) -> None:
    compiled = millrace(project, "kubeflow", "compile", "trips")
    assert compiled.returncode == 0, compiled.stderr
    parameters = {tasks.RUN_PARAMETER: "trips-1"}
    [first] = [step for step in steps.read_steps(compiled.stdout, parameters, "job") if step.key == "example-gen"]
    words = first.command[first.command.index("--") + 1 :]
    assert words[:4] == ("millrace", "node", "run", "trips")

    # Like its container, except for the cluster's store.
    ended = millrace(project, *words[1:5], "--run", "trips-1", "--env", "local")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (project / "artifacts" / "pipelines" / "trips" / "ExampleGen" / "examples").is_dir()
