"""`millrace recipes` and `millrace show`: what there is, and its settings."""

from __future__ import annotations

import click
import yaml

from pipeline import recipe
from pipeline.commands.line import RECIPE_ARGUMENT, SET_OPTION, reports_errors


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
