"""What the tasks' containers call."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from pipeline import environment as environments
from pipeline import outcome
from pipeline.commands.line import ENVIRONMENT_OPTION, SET_OPTION, reports_errors

RUN_OPTION = click.option("--run", "run_id", required=True, help="The run's name in the metadata store.")
RECIPE = click.argument("recipe_name", metavar="RECIPE")


@click.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.option("--executor-input", required=True, help="What Kubeflow's launcher puts for {{$}}.")
@click.argument("command", nargs=-1, required=True)
@reports_errors
def task(executor_input: str, command: tuple[str, ...]) -> None:
    """Run COMMAND, and tell Kubeflow of what it made."""
    from pipeline.kubeflow import task as tasks

    sys.exit(tasks.run(executor_input, command))


@click.command(hidden=True)
@RECIPE
@RUN_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def verdict(recipe_name: str, run_id: str, environment_name: str) -> None:
    """Say why a run's model was not good enough."""
    from pipeline.kubeflow import ending

    result = ending.result(recipe_name, run_id, environments.load(environment_name))
    outcome.show(Console(), result)
    if result.good_enough:
        click.echo("The model was good enough.")


@click.command(hidden=True)
@RECIPE
@RUN_OPTION
@SET_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def close(recipe_name: str, run_id: str, overrides: tuple[str, ...], environment_name: str) -> None:
    """Close a run of which no task goes on any more, and write its report."""
    from pipeline.kubeflow import ending

    environment = environments.load(environment_name)
    for line in ending.close(recipe_name, overrides, run_id, environment, environment_name):
        click.echo(line)
