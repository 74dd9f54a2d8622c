"""`millrace kubeflow rehearse`: the compiled spec's commands, on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from components.errors import NodeError
from pipeline import environment as environments
from pipeline import local, outcome, recipe, stores, warm
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION, SPAN_OPTION
from pipeline.commands.line import (
    EXIT_INTERRUPTED,
    EXIT_NOT_GOOD_ENOUGH,
    RECIPE_ARGUMENT,
    SET_OPTION,
    reports_errors,
    shell_line,
)
from pipeline.kubeflow import tasks
from pipeline.kubeflow.settings import TASKS

if TYPE_CHECKING:
    from pipeline.kubeflow.watch import TaskState

FOLDER = "kubeflow"
"""Of the launcher's files, in the run's folder of logs."""


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@SPAN_OPTION
@ENVIRONMENT_OPTION
@click.option(
    "--on", "here", default="rehearsal", show_default=True, metavar="ENV", help="What stands for the cluster here."
)
@click.option("--run", "run_id", help="The run's name in the metadata store; by recipe and time unless given.")
@click.option(
    "--at-once", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default="CPUs", help="So many tasks."
)
@reports_errors
def rehearse(
    recipe_name: str,
    overrides: tuple[str, ...],
    span: int | None,
    environment_name: str,
    here: str,
    run_id: str | None,
    at_once: int,
) -> None:
    """Run the commands of a recipe's compiled spec on this machine, in the spec's order.

    \b
    Exit codes: 0 pushed or up to date, 1 error, 2 wrong settings,
    3 the model was not good enough, 130 interrupted.
    """
    warm.prepare()
    from pipeline.kubeflow import rehearsal, steps, watch

    chosen = recipe.load(recipe_name, overrides)
    place = environments.load(here)
    # Made now: tasks that begin together would make its tables together.
    stores.prepare(place)
    stores.writable(place)
    text = shared.spec_text(chosen, environment_name, overrides)
    name = run_id or local.new_run_id(chosen)
    found = steps.read(text, shared.parameters(name, span, overrides), job="rehearsal")
    folder = place.log_root / name / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    names = {tasks.key(task): task for task in TASKS}
    work = rehearsal.Rehearsal(found, names, folder, here, at_once)
    console = Console()
    console.print(f"Rehearsal  {name}", highlight=False)
    try:
        ended = work.run(watch.View(console, f"{name} on this machine"))
    except KeyboardInterrupt:
        click.echo("Stopped. Nothing half done is left.")
        sys.exit(EXIT_INTERRUPTED)
    _end(console, ended, name, here, recipe_name)


def _end(console: Console, ended: Sequence[TaskState], name: str, here: str, recipe_name: str) -> None:
    failed = [task for task in ended if task.state == "failed"]
    if failed:
        told = "\n".join(f"{task.name} failed: {task.error}" for task in failed)
        raise NodeError(told, f"Go on:  {shell_line('kubeflow', 'rehearse', recipe_name, '--run', name, '--on', here)}")
    from pipeline.kubeflow import ending

    result = ending.result(recipe_name, name, environments.load(here))
    outcome.show(console, result)
    if not result.good_enough:
        sys.exit(EXIT_NOT_GOOD_ENOUGH)
