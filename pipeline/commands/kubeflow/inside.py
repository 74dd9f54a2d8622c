"""The commands that the tasks' containers call: a node's work, the verdict on a model, and the end of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click
from rich.console import Console

from contracts.errors import MillraceError
from metadata.records import NEVER_ENDED, NodeRun
from pipeline.commands.options import ENVIRONMENT_OPTION, SET_OPTION, reports_errors
from pipeline.plan import recipe
from pipeline.run import reports, run_summary
from pipeline.run.workplace import Workplace


def close_run(recipe_name: str, overrides: Sequence[str], run_id: str, workplace: Workplace) -> list[str]:
    """Closes a run whose tasks have all ended, and writes its report.

    Returns:
        What was done, one line each.

    Raises:
        StoreError: The metadata store stayed down.
        MillraceError: It is empty.
    """
    # Patiently, because Kubeflow does not retry this task.
    records = workplace.patiently(lambda: _nodes(recipe_name, run_id, workplace))
    unfinished = [node.node for node in records.values() if node.state in NEVER_ENDED]
    workplace.sweep_leftovers(recipe_name, run_id)
    line = reports.write_after_run(workplace, run_id, recipe.load(recipe_name, overrides))
    lines = [f"{node}: its task ended before it did; cancelled." for node in unfinished]
    return [*lines, line or f"No report: run {run_id} never reached the metadata store."]


def run_result(recipe_name: str, run_id: str, workplace: Workplace) -> run_summary.RunSummary:
    """Reads the summary of a run.

    Raises:
        StoreError: The metadata store is down.
        MillraceError: It is empty.
    """
    nodes = _nodes(recipe_name, run_id, workplace)
    store = workplace.open_store()
    return run_summary.read_run_summary(store, nodes) if store else run_summary.RunSummary(None, None)


def _nodes(recipe_name: str, run_id: str, workplace: Workplace) -> Mapping[str, NodeRun]:
    store = workplace.open_store()
    if store is None:
        raise MillraceError(f"no run {run_id!r}: the metadata store is empty.")
    return store.node_runs(recipe_name, run_id)


RUN_OPTION = click.option("--run", "run_id", required=True, help="The run's name in the metadata store.")
RECIPE = click.argument("recipe_name", metavar="RECIPE")


@click.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.option("--executor-input", required=True, help="What Kubeflow's launcher fills in for {{$}}.")
@click.argument("command", nargs=-1, required=True)
@reports_errors
def task(executor_input: str, command: tuple[str, ...]) -> None:
    """Run COMMAND, and report its outputs to Kubeflow."""
    from pipeline.schedule.kubeflow import task as tasks

    sys.exit(tasks.run_task(executor_input, command))


@click.command(hidden=True)
@RECIPE
@RUN_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def verdict(recipe_name: str, run_id: str, environment_name: str) -> None:
    """Say why a run's model was not good enough."""
    result = run_result(recipe_name, run_id, Workplace.load(environment_name))
    run_summary.show_run_summary(Console(), result)
    if result.good_enough:
        click.echo("The model was good enough.")


@click.command(hidden=True)
@RECIPE
@RUN_OPTION
@SET_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def close(recipe_name: str, run_id: str, overrides: tuple[str, ...], environment_name: str) -> None:
    """Close a run whose tasks have all ended, and write its report."""
    for line in close_run(recipe_name, overrides, run_id, Workplace.load(environment_name)):
        click.echo(line)
