"""`millrace check`: whether everything that an environment names can be reached."""

from __future__ import annotations

import sys

import click

from pipeline import environment as environments
from pipeline import reach
from pipeline.commands.line import ENVIRONMENT_OPTION, EXIT_ERROR, reports_errors


@click.command()
@ENVIRONMENT_OPTION
@reports_errors
def check(environment_name: str) -> None:
    """Reach for everything that an environment names: its metadata store and its folders.

    \b
    Exit codes: 0 all is fine, 1 something cannot be reached, 2 wrong settings.
    """
    failed = False
    for reached in reach.everything(environments.load(environment_name)):
        failed |= not reached.fine
        word, colour = ("fine", "green") if reached.fine else ("fails", "red")
        click.echo(f"{reached.name:<16} {click.style(f'{word:<6}', fg=colour)} {reached.text}")
        if reached.fix:
            click.echo(f"{'':<24}{reached.fix}")
    if failed:
        sys.exit(EXIT_ERROR)
