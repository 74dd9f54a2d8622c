"""The user's project: a folder with `recipes/`, found from the current folder upwards, as git finds a repository.

Millrace itself may be elsewhere: its packages are imported from where they are installed, the recipes from the project.
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
"""Millrace's own, as they are imported."""

A_RECIPE = "recipes/*/recipe.yaml"


def find(start: Path) -> Path:
    """The nearest folder with a recipe, from `start` upwards.

    Raises:
        SettingsError: There is none, or its modules would be imported in place of ours.
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
    """The project's folder, the same for as long as this process goes on.

    Raises:
        SettingsError: There is none.
    """
    return find(Path.cwd())


def enter() -> None:
    """Has Python find the project's recipes, here and in all processes that are started from here.

    Outside of a project there are none to find, and what needs one says so: see `root`.
    """
    with suppress(SettingsError):
        folder = str(root())
        if folder not in sys.path:
            sys.path.append(folder)
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        if folder not in paths:
            os.environ["PYTHONPATH"] = os.pathsep.join([*paths, folder])


def relative_path(path: Path) -> str:
    """A path as the project's people know it: relative where it is below the project's folder."""
    return str(path.relative_to(root())) if path.is_relative_to(root()) else str(path)


def recipes_folder() -> Path:
    """Holds a folder for each recipe."""
    return root() / "recipes"


def environment_files() -> dict[str, Path]:
    """The files of all environments by name: the project's, and those that come with Millrace."""
    folders = (ENGINE / "environments", root() / "environments")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
