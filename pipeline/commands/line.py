"""What the commands share: their options, how they tell errors, and how they name the next command."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from components.errors import MillraceError, SettingsError
from pipeline import outcome, worker

EXIT_ERROR = 1
EXIT_SETTINGS = 2
EXIT_NOT_GOOD_ENOUGH = 3
EXIT_INTERRUPTED = 130

DEFAULT_RECIPE = "taxi"
DEFAULT_ENVIRONMENT = "local"

RECIPE_ARGUMENT = click.argument("recipe_name", metavar="[RECIPE]", default=DEFAULT_RECIPE)
SET_OPTION = click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override a setting, e.g. trainer.batch_size=64."
)
ENVIRONMENT_OPTION = click.option(
    "--env",
    "environment_name",
    default=DEFAULT_ENVIRONMENT,
    show_default=True,
    help="A name under environments/, or a file.",
)


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Prints an error that the user can mend as one message, and ends with its documented exit code."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except MillraceError as error:
            tell(error)
            sys.exit(EXIT_SETTINGS if isinstance(error, SettingsError) else EXIT_ERROR)

    return wrapped


def tell(error: MillraceError) -> None:
    """Prints an error."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(str(error), err=True)


def environment_words(name: str) -> list[str]:
    """The words that name an environment on a command line; none for the default."""
    return [] if name == DEFAULT_ENVIRONMENT else ["--env", name]


def set_words(overrides: Sequence[str]) -> list[str]:
    """The words that override settings on a command line."""
    return [word for override in overrides for word in ("--set", override)]


def shell_line(*words: str) -> str:
    """A command line of ours that the user's shell reads as it is meant."""
    return shlex.join([program("millrace"), *words])


def run_line(request: worker.Request) -> str:
    """The command that runs the same again."""
    sets = set_words(request.overrides)
    end = ["--to", request.to_node] if request.to_node else []
    return shell_line("run", request.recipe, *sets, *end, *environment_words(request.environment))


def program(name: str) -> str:
    """How the user can call a program of the environment from here: by name where it is activated, else by path."""
    beside = Path(sys.executable).parent / name
    if shutil.which(name) or not beside.exists():
        return name
    return outcome.shown(beside)
