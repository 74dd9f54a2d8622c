"""The user's project: a folder with `recipes/`, searched for from the current folder upwards, as git does.

Millrace may be elsewhere: its packages are imported from where they are installed, recipes from the project.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from contracts.errors import SettingsError

ENGINE = Path(__file__).resolve().parents[2]
"""Holds Millrace's own packages: a clone, which is a project too, or the site-packages of an environment."""

PACKAGES = ("components", "contracts", "flink", "metadata", "pipeline", "serving", "ui")
"""The names of Millrace's own packages."""

A_RECIPE = "recipes/*/recipe.yaml"


def find(start: Path) -> Path:
    """The nearest folder with a recipe, from `start` upwards.

    Raises:
        SettingsError: There is none, or its modules would shadow ours.
    """
    folder = next((folder for folder in (start, *start.parents) if any(folder.glob(A_RECIPE))), None)
    if folder is None:
        raise SettingsError(
            f"no project: neither {start} nor a folder above it has recipes/NAME/recipe.yaml.",
            "Go to your project's folder, or make one: see docs/projects.md.",
        )
    for name in PACKAGES if folder != ENGINE else ():
        if (folder / name / "__init__.py").exists() or (folder / f"{name}.py").exists():
            raise SettingsError(
                f"the project {folder} has a Python package {name}, which is the name of one of Millrace's own.",
                "Name it otherwise, or move it below the recipe that uses it.",
            )
    return folder


@cache
def root() -> Path:
    """The project's folder, found once per process.

    Raises:
        SettingsError: There is none.
    """
    return find(Path.cwd())


def enter() -> None:
    """Puts the project's recipes on Python's path, in this process and in those it starts.

    Outside a project this does nothing; whatever needs a project then says so: see `root`.
    """
    with suppress(SettingsError):
        folder = str(root())
        if folder not in sys.path:
            sys.path.append(folder)
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        if folder not in paths:
            os.environ["PYTHONPATH"] = os.pathsep.join([*paths, folder])


def relative_path(path: Path) -> str:
    """A path for display: relative to the project's folder if it is below it."""
    return str(path.relative_to(root())) if path.is_relative_to(root()) else str(path)


def recipes_folder() -> Path:
    """The folder that holds a folder for each recipe."""
    return root() / "recipes"


def environment_files() -> dict[str, Path]:
    """The files of all environments by name: Millrace's own, and the project's, which take precedence."""
    folders = (ENGINE / "environments", root() / "environments")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
