"""A project is found from the current folder upwards, and Python finds its modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import beam, environment, project
from pipeline.plan.beam import BeamSettings, DataflowSettings

ENTER = "from pipeline.plan import project; project.enter(); import recipes.mine.features; print(project.root())"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one recipe, as the current folder."""
    recipe = tmp_path / "mine" / "recipes" / "mine"
    recipe.mkdir(parents=True)
    (recipe / "recipe.yaml").touch()
    (recipe / "features.py").touch()
    monkeypatch.setattr(project, "root", lambda: tmp_path / "mine")
    return tmp_path / "mine"


def test_the_nearest_folder_with_a_recipe_is_the_project(elsewhere: Path) -> None:
    # Such as our own tests/recipes/, which holds none.
    (elsewhere / "tests" / "recipes" / "mine").mkdir(parents=True)
    assert project.find(elsewhere / "recipes" / "mine") == elsewhere
    assert project.find(elsewhere / "tests") == elsewhere
    with pytest.raises(
        SettingsError, match=r"no project: neither .* nor a folder above it has recipes/NAME/recipe.yaml"
    ):
        project.find(elsewhere.parent)


def test_a_package_with_a_name_of_ours_is_refused_and_a_plain_folder_is_not(elsewhere: Path) -> None:
    (elsewhere / "serving" / "deploy").mkdir(parents=True)
    assert project.find(elsewhere) == elsewhere
    (elsewhere / "components").mkdir()
    (elsewhere / "components" / "__init__.py").touch()
    with pytest.raises(SettingsError, match="has a Python package components, which is the name of one of Millrace's"):
        project.find(elsewhere)


def test_its_recipes_are_found_here_and_in_all_processes_that_are_started(elsewhere: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(project.ENGINE)}
    child = (
        "import os, subprocess, sys; subprocess.run([sys.executable, '-c', 'import recipes.mine.features'], check=True)"
    )
    command = [sys.executable, "-c", f"{ENTER}\nos = __import__('os'); os.chdir('/')\n{child}"]
    ended = subprocess.run(command, cwd=elsewhere / "recipes", env=environ, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == (f"{elsewhere}\n", "")


def test_its_environments_come_before_those_of_the_same_name(elsewhere: Path) -> None:
    assert project.environment_files()["local"] == project.ENGINE / "environments" / "local.yaml"
    assert environment.load("local").log_root == elsewhere / "artifacts" / "logs"
    (elsewhere / "environments").mkdir()
    (elsewhere / "environments" / "local.yaml").touch()
    assert project.environment_files()["local"] == elsewhere / "environments" / "local.yaml"
    with pytest.raises(SettingsError, match="There are: flink, kubeflow, local, rehearsal"):
        environment.load("clowd")


def test_dataflow_without_an_image_installs_the_projects_setup_file(elsewhere: Path) -> None:
    dataflow = DataflowSettings(project="p", region="r", temp_location="gs://bucket/temp")
    settings = BeamSettings(runner="dataflow", dataflow=dataflow)
    with pytest.raises(SettingsError, match=r"would install the recipes by .*setup.py, which is not there"):
        beam.pipeline_options(settings)
    (elsewhere / "setup.py").touch()
    assert f"--setup_file={elsewhere / 'setup.py'}" in beam.pipeline_options(settings)


def test_options_of_beam_alone_need_no_setup_file(elsewhere: Path) -> None:
    settings = BeamSettings(options=["--direct_num_workers=2"])
    assert beam.pipeline_options(settings) == ["--direct_num_workers=2", beam.NO_PACKING]


def test_direct_names_beams_own_runner(elsewhere: Path) -> None:
    assert beam.pipeline_options(BeamSettings(runner="direct")) == ["--runner=DirectRunner", beam.NO_PACKING]
