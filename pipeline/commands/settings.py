"""`millrace recipes`, `show` and `check`: the recipes, their settings, and what an environment names."""

from __future__ import annotations

import sys

import click
import yaml

from pipeline.commands import reach
from pipeline.commands.options import ENVIRONMENT_OPTION, EXIT_ERROR, RECIPE_ARGUMENT, SET_OPTION, reports_errors
from pipeline.plan import recipe
from pipeline.run.workplace import Workplace


@click.command()
@reports_errors
def recipes() -> None:
    """List the recipes."""
    for name in recipe.names():
        click.echo(f"{name:<12} {recipe.load(name).settings.description}")


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@reports_errors
def show(recipe_name: str, overrides: tuple[str, ...]) -> None:
    """Print a recipe's resolved settings, defaults included."""
    settings = recipe.load(recipe_name, overrides).settings.model_dump(mode="json")
    click.echo(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), nl=False)


@click.command()
@ENVIRONMENT_OPTION
@reports_errors
def check(environment_name: str) -> None:
    """Check that everything an environment names can be reached: its metadata store, its folders, its servers.

    \b
    Exit codes: 0 all is fine, 1 something cannot be reached, 2 wrong settings.
    """
    failed = False
    for reached in reach.reach_everything(Workplace.load(environment_name)):
        failed |= not reached.fine
        word, colour = ("fine", "green") if reached.fine else ("fails", "red")
        click.echo(f"{reached.name:<16} {click.style(f'{word:<6}', fg=colour)} {reached.text}")
        if reached.fix:
            click.echo(f"{'':<24}{reached.fix}")
    if failed:
        sys.exit(EXIT_ERROR)
