"""`millrace kubeflow compile` and `submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from components.errors import MillraceError, NodeError
from pipeline import environment as environments
from pipeline import local, outcome, recipe
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION, SPAN_OPTION
from pipeline.commands.line import EXIT_NOT_GOOD_ENOUGH, RECIPE_ARGUMENT, SET_OPTION, reports_errors, shell_line
from pipeline.kubeflow import tasks
from pipeline.kubeflow.settings import TASKS, VERDICT_TASK


@click.command("compile")
@RECIPE_ARGUMENT
@SET_OPTION
@ENVIRONMENT_OPTION
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; printed unless given.")
@reports_errors
def compile_command(recipe_name: str, overrides: tuple[str, ...], environment_name: str, output: Path | None) -> None:
    """Write the pipeline spec and the platform spec of a recipe."""
    text = shared.spec_text(recipe.load(recipe_name, overrides), environment_name, overrides)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MillraceError(f"{output} cannot be written: {error.strerror}.", "Choose another file with -o.") from error
    click.echo(outcome.shown(output.absolute()))


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@SPAN_OPTION
@ENVIRONMENT_OPTION
@click.option("--run", "run_id", help="The run's name in the metadata store; by recipe and time unless given.")
@click.option("--wait", is_flag=True, help="Show the run until it ends.")
@reports_errors
def submit(
    recipe_name: str,
    overrides: tuple[str, ...],
    span: int | None,
    environment_name: str,
    run_id: str | None,
    wait: bool,
) -> None:
    """Start a run of a recipe on the cluster.

    \b
    Exit codes with --wait: 0 pushed or up to date, 1 error,
    3 the model was not good enough.
    """
    client = shared.client_of(environment_name)
    settings = shared.settings_of(environment_name)
    chosen, version = shared.uploaded(recipe_name, overrides, environment_name, client)
    name = run_id or local.new_run_id(chosen)
    run = client.start(name, version, shared.parameters(name, span, overrides))
    click.echo(f"Started    {name}")
    click.echo(f"Watch      {settings.pages}/#/runs/details/{run.run_id}")
    if not wait:
        click.echo(f"Or         {shell_line('kubeflow', 'status', name, *shared.where(environment_name))}")
        return
    from pipeline.kubeflow import watch

    names = [task.name for task in tasks.of(chosen, environments.load(environment_name), environment_name)]
    ended = watch.wait(client, run.run_id, names, watch.View(Console(), f"{name} on {settings.host}"))
    _end(ended, name, environment_name)


def _end(run: Any, name: str, environment_name: str) -> None:
    from pipeline.kubeflow import watch

    where = shared.where(environment_name)
    if run.state != "SUCCEEDED":
        failed = [task.name for task in watch.states(run, TASKS) if task.state == "failed"]
        lines = "".join(f"\n  {shell_line('kubeflow', 'logs', name, node, *where)}" for node in failed)
        word = watch.WORDS.get(run.state, run.state)
        raise NodeError(f"{name} ended: {word}.", f"Read the logs:{lines}" if lines else None)
    if watch.not_good_enough(run):
        why = shell_line("kubeflow", "logs", name, VERDICT_TASK, *where)
        click.echo(f"Not pushed: the model was not good enough.\nWhy        {why}")
        sys.exit(EXIT_NOT_GOOD_ENOUGH)
