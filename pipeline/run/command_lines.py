"""Commands and paths as the user would type them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from metadata import files
from pipeline.run.folder import Request

DEFAULT_RECIPE = "taxi"
DEFAULT_ENVIRONMENT = "local"


def display_path(location: Path | str) -> str:
    """A path as the user would write it: relative if it is below the working folder; a URI unchanged."""
    if isinstance(location, str) and files.is_uri(location):
        return location
    path = Path(location)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def program(name: str) -> str:
    """How the user calls a program of the virtual environment: by name if it is on the PATH, otherwise by path."""
    beside = Path(sys.executable).parent / name
    if shutil.which(name) or not beside.exists():
        return name
    return display_path(beside)


def shell_line(*words: str) -> str:
    """A `millrace` command line, quoted for the user's shell."""
    return shlex.join([program("millrace"), *words])


def environment_words(name: str) -> list[str]:
    """The words that select an environment on a command line; none for the default."""
    return [] if name == DEFAULT_ENVIRONMENT else ["--env", name]


def set_words(overrides: Sequence[str]) -> list[str]:
    """The words that override settings on a command line."""
    return [word for override in overrides for word in ("--set", override)]


def run_line(request: Request) -> str:
    """The command that repeats a run."""
    end = ["--to", request.to_node] if request.to_node else []
    words = [request.recipe, *set_words(request.overrides), *end, *environment_words(request.environment)]
    return shell_line("run", *words)
