"""`millrace kubeflow compile`, `submit`, `status`, `logs` and `cancel`: runs on the cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from contracts.errors import MillraceError, NodeError
from pipeline.commands import lookup
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION, SPAN_OPTION, Target
from pipeline.commands.options import EXIT_NOT_GOOD_ENOUGH, RECIPE_ARGUMENT, SET_OPTION, reports_errors
from pipeline.plan import nodes, recipe
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK
from pipeline.plan.recipe import own_nodes
from pipeline.run.command_lines import display_path
from pipeline.run.context import new_run_id
from pipeline.schedule.kubeflow import tasks

if TYPE_CHECKING:
    from pipeline.schedule.kubeflow.client import Client


@click.command("compile")
@RECIPE_ARGUMENT
@SET_OPTION
@ENVIRONMENT_OPTION
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; printed unless given.")
@reports_errors
def compile_command(recipe_name: str, overrides: tuple[str, ...], environment_name: str, output: Path | None) -> None:
    """Write the pipeline spec and the platform spec of a recipe."""
    text = Target.load(environment_name).compile_spec(recipe.load(recipe_name, overrides), overrides)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MillraceError(f"{output} cannot be written: {error.strerror}.", "Choose another file with -o.") from error
    click.echo(display_path(output.absolute()))


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
    target = Target.load(environment_name)
    client = target.client
    chosen, version = target.upload(recipe_name, overrides)
    name = run_id or new_run_id(recipe_name)
    run = client.start(name, version, shared.parameters(name, span, overrides))
    click.echo(f"Started    {name}")
    click.echo(f"Watch      {target.page(f'runs/details/{run.run_id}')}")
    if not wait:
        click.echo(f"Or         {target.command('status', name)}")
        return
    from pipeline.schedule.kubeflow import watch

    names = [task.name for task in target.tasks(chosen)]
    ended = watch.wait_for_end(client, run.run_id, names, watch.View(Console(), f"{name} on {target.settings.host}"))
    _end(ended, name, target)


def _end(run: Any, name: str, target: Target) -> None:
    from pipeline.schedule.kubeflow import watch

    if run.state != "SUCCEEDED":
        failed = [task.name for task in watch.task_states(run, tasks.every_task()) if task.state == "failed"]
        lines = "".join(f"\n  {target.command('logs', name, node)}" for node in failed)
        word = watch.WORDS.get(run.state, run.state)
        raise NodeError(f"{name} ended: {word}.", f"Read the logs:{lines}" if lines else None)
    if watch.not_good_enough(run):
        why = target.command("logs", name, VERDICT_TASK)
        click.echo(f"Not pushed: the model was not good enough.\nWhy        {why}")
        sys.exit(EXIT_NOT_GOOD_ENOUGH)


LOOKED_THROUGH = 1000
"""How many of the newest runs are searched for a name."""

RUN_ARGUMENT = click.argument("run_name", metavar="[RUN]", required=False)


def _run(client: Client, name: str | None) -> Any:
    """The run with that name, or with that Kubeflow id; the newest for None.

    Raises:
        MillraceError: There is none.
    """
    listed = client.runs(LOOKED_THROUGH if name else 1)
    for run in listed:
        if name is None or name == _own_name(run) or name.endswith(run.run_id):
            return client.run(run.run_id)
    if not listed:
        raise MillraceError("no run is on the cluster.", "Start one with: millrace kubeflow submit")
    raise MillraceError(f"no run {name!r} on the cluster; the newest is {_own_name(listed[0])}.")


def _own_name(run: Any) -> str:
    """A run's name in the metadata store; for one that a schedule started, the id that the name ends with."""
    parameters = (run.runtime_config.parameters if run.runtime_config else None) or {}
    return str(parameters.get(tasks.RUN_PARAMETER) or run.run_id)


@click.command()
@RUN_ARGUMENT
@click.option("--all", "list_all", is_flag=True, help="List the runs instead.")
@ENVIRONMENT_OPTION
@reports_errors
def status(run_name: str | None, list_all: bool, environment_name: str) -> None:
    """Show the tasks of RUN, or of the newest run."""
    from pipeline.schedule.kubeflow import watch

    target = Target.load(environment_name)
    client = target.client
    if list_all:
        table = lookup.make_table("Runs on the cluster", ("Run", "State", "Started", "Kubeflow's id"))
        for run in client.runs(lookup.WIDEST):
            began = f"{run.created_at:%Y-%m-%d %H:%M:%S}" if run.created_at else ""
            table.add_row(_own_name(run), watch.WORDS.get(run.state or "", "waiting"), began, run.run_id)
        lookup.print_wide(table)
        return
    run = _run(client, run_name)
    click.echo(f"{_own_name(run)}: {watch.WORDS.get(run.state or '', 'waiting')}")
    Console().print(watch.task_table(watch.task_states(run, watch.shown_names(tasks.every_task(), run))))
    click.echo(target.page(f"runs/details/{run.run_id}"))


@click.command()
@click.argument("run_name", metavar="RUN")
@click.argument("task_name", metavar="NODE")
@click.option("--follow", is_flag=True, help="Keep printing until the task ends.")
@ENVIRONMENT_OPTION
@reports_errors
def logs(run_name: str, task_name: str, follow: bool, environment_name: str) -> None:
    """Print what the task of NODE in RUN has written."""
    from pipeline.schedule.kubeflow.cluster import Cluster

    name = task_name if task_name in (EXIT_TASK, VERDICT_TASK) else nodes.find(task_name, own_nodes())
    target = Target.load(environment_name)
    run = _run(target.client, run_name)
    for text in Cluster().logs(target.settings.namespace, run.run_id, name, follow):
        sys.stdout.write(text)
        sys.stdout.flush()


@click.command()
@click.argument("run_name", metavar="RUN")
@ENVIRONMENT_OPTION
@reports_errors
def cancel(run_name: str, environment_name: str) -> None:
    """End RUN; what its nodes have finished stays, and a new run takes it from the cache."""
    from pipeline.schedule.kubeflow import watch

    client = Target.load(environment_name).client
    run = _run(client, run_name)
    if run.state in watch.ENDED:
        raise MillraceError(f"{_own_name(run)} has ended already: {watch.WORDS[run.state]}.")
    client.cancel(run.run_id)
    click.echo(f"Cancelled  {_own_name(run)}")
