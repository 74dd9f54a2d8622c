"""What the commands share: their options, their exit codes, and how they report errors."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from contracts.errors import BusyError, MillraceError, SettingsError
from pipeline.run.command_lines import DEFAULT_ENVIRONMENT, DEFAULT_RECIPE

EXIT_ERROR = 1
EXIT_SETTINGS = 2
EXIT_NOT_GOOD_ENOUGH = 3
EXIT_TRY_AGAIN = 75
"""BSD's EX_TEMPFAIL."""

EXIT_INTERRUPTED = 130

REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the system says about files that this user may not read or write."""

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
    """Prints an error that the user can mend as one message, and exits with its documented code."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except MillraceError as error:
            print_error(error)
            codes = {SettingsError: EXIT_SETTINGS, BusyError: EXIT_TRY_AGAIN}
            sys.exit(codes.get(type(error), EXIT_ERROR))
        except OSError as error:
            if error.errno not in REFUSED:
                raise
            print_error(MillraceError(f"{error.filename}: {error.strerror}.", "Let this user read and write there."))
            sys.exit(EXIT_ERROR)

    return wrapped


def print_error(error: MillraceError) -> None:
    """Prints an error."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(str(error), err=True)
