"""`millrace kubeflow rehearse`: the compiled spec's commands, on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from contracts.errors import NodeError
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION, SPAN_OPTION, Target
from pipeline.commands.options import (
    EXIT_INTERRUPTED,
    EXIT_NOT_GOOD_ENOUGH,
    RECIPE_ARGUMENT,
    SET_OPTION,
    reports_errors,
)
from pipeline.plan import recipe
from pipeline.run import run_summary, warm
from pipeline.run.command_lines import shell_line
from pipeline.run.context import new_run_id
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import tasks

if TYPE_CHECKING:
    from pipeline.schedule.kubeflow.watch import TaskState

FOLDER = "kubeflow"
"""The folder of the launcher's files, in the run's log folder."""


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@SPAN_OPTION
@ENVIRONMENT_OPTION
@click.option(
    "--on",
    "here",
    default="rehearsal",
    show_default=True,
    metavar="ENV",
    help="The environment that replaces the cluster.",
)
@click.option("--run", "run_id", help="The run's name in the metadata store; by recipe and time unless given.")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="CPUs",
    help="How many tasks at a time.",
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
    from pipeline.schedule.kubeflow import rehearsal, steps, watch

    chosen = recipe.load(recipe_name, overrides)
    place = Workplace.load(here)
    # Created now, because tasks that begin at the same time would all try to create its tables.
    place.prepare_store()
    place.open_for_writing()
    text = Target.load(environment_name).compile_spec(chosen, overrides)
    name = run_id or new_run_id(recipe_name)
    work = steps.read_steps(text, shared.parameters(name, span, overrides), job="rehearsal")
    folder = place.run_folder(name).path / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    names = {tasks.task_key(task): task for task in tasks.every_task()}
    rehearsed = rehearsal.Rehearsal(work, names, folder, here, at_once)
    console = Console()
    console.print(f"Rehearsal  {name}", highlight=False)
    try:
        ended = rehearsed.run(watch.View(console, f"{name} on this machine"))
    except KeyboardInterrupt:
        click.echo("Stopped. Nothing half done is left.")
        sys.exit(EXIT_INTERRUPTED)
    _end(console, ended, name, here, recipe_name)


def _end(console: Console, ended: Sequence[TaskState], name: str, here: str, recipe_name: str) -> None:
    failed = [task for task in ended if task.state == "failed"]
    if failed:
        failures = "\n".join(f"{task.name} failed: {task.error}" for task in failed)
        raise NodeError(
            failures, f"Go on:  {shell_line('kubeflow', 'rehearse', recipe_name, '--run', name, '--on', here)}"
        )
    from pipeline.commands.kubeflow import inside

    result = inside.run_result(recipe_name, name, Workplace.load(here))
    run_summary.show_run_summary(console, result)
    if not result.good_enough:
        sys.exit(EXIT_NOT_GOOD_ENOUGH)
