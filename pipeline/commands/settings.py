"""`millrace recipes`, `show` and `check`: the recipes, their settings, and what an environment names."""

from __future__ import annotations

import sys

import click
import yaml

from contracts.competition import read_competition
from metadata.store import Store
from pipeline.commands import reach
from pipeline.commands.options import ENVIRONMENT_OPTION, EXIT_ERROR, RECIPE_ARGUMENT, SET_OPTION, reports_errors
from pipeline.plan import nodes, recipe
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
@ENVIRONMENT_OPTION
@reports_errors
def show(recipe_name: str, overrides: tuple[str, ...], environment_name: str) -> None:
    """Print a recipe's resolved settings, defaults included.

    And, as a comment, how the kinds of model compared that competed in its latest training.
    """
    settings = recipe.load(recipe_name, overrides).settings.model_dump(mode="json")
    click.echo(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), nl=False)
    store = Workplace.load(environment_name).open_store()
    for line in _competed(store, recipe_name) if store else ():
        click.echo(f"# {line}")


def _competed(store: Store, recipe_name: str) -> list[str]:
    """How candidates compared in the latest training that ended; empty if none did."""
    for run_id in store.run_ids(recipe_name):
        trainer = store.node_runs(recipe_name, run_id).get(nodes.TRAINER_NODE)
        if trainer is None or not trainer.succeeded:
            continue
        competition = next(map(read_competition, store.outputs(trainer.id).get("model_run", [])), None)
        return [f"In run {run_id}:", *competition.described()] if competition else []
    return []


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
