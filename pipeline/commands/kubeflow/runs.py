"""`millrace kubeflow status`, `logs` and `cancel`: runs on the cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from components.errors import MillraceError
from pipeline import nodes
from pipeline.commands import found
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION
from pipeline.commands.line import reports_errors
from pipeline.kubeflow import tasks
from pipeline.kubeflow.settings import EXIT_TASK, TASKS, VERDICT_TASK

if TYPE_CHECKING:
    from pipeline.kubeflow.client import Client

LOOKED_THROUGH = 1000
"""So many of the newest runs are looked through for a name."""

RUN_ARGUMENT = click.argument("run_name", metavar="[RUN]", required=False)


def _run(client: Client, name: str | None) -> Any:
    """The run of that name, or with that id of Kubeflow's; the newest for None.

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
    """Its name in the metadata store; of one that a schedule started, what that ends with."""
    given = (run.runtime_config.parameters if run.runtime_config else None) or {}
    return str(given.get(tasks.RUN_PARAMETER) or run.run_id)


@click.command()
@RUN_ARGUMENT
@click.option("--all", "list_all", is_flag=True, help="List the runs instead.")
@ENVIRONMENT_OPTION
@reports_errors
def status(run_name: str | None, list_all: bool, environment_name: str) -> None:
    """Show the tasks of RUN, or of the newest run."""
    from pipeline.kubeflow import watch

    client = shared.client_of(environment_name)
    if list_all:
        made = found.table("Runs on the cluster", ("Run", "State", "Started", "Kubeflow's id"))
        for run in client.runs(found.WIDEST):
            began = f"{run.created_at:%Y-%m-%d %H:%M:%S}" if run.created_at else ""
            made.add_row(_own_name(run), watch.WORDS.get(run.state or "", "waiting"), began, run.run_id)
        found.show(made)
        return
    run = _run(client, run_name)
    click.echo(f"{_own_name(run)}: {watch.WORDS.get(run.state or '', 'waiting')}")
    Console().print(watch.table(watch.states(run, watch.shown_names(TASKS, run))))
    click.echo(f"{shared.settings_of(environment_name).pages}/#/runs/details/{run.run_id}")


@click.command()
@click.argument("run_name", metavar="RUN")
@click.argument("task_name", metavar="NODE")
@click.option("--follow", is_flag=True, help="Go on until the task ends.")
@ENVIRONMENT_OPTION
@reports_errors
def logs(run_name: str, task_name: str, follow: bool, environment_name: str) -> None:
    """Print what the task of NODE in RUN has written."""
    from pipeline.kubeflow.cluster import Cluster

    name = task_name if task_name in (EXIT_TASK, VERDICT_TASK) else nodes.find(task_name)
    settings = shared.settings_of(environment_name)
    run = _run(shared.client_of(environment_name), run_name)
    for text in Cluster().logs(settings.namespace, run.run_id, name, follow):
        sys.stdout.write(text)
        sys.stdout.flush()


@click.command()
@click.argument("run_name", metavar="RUN")
@ENVIRONMENT_OPTION
@reports_errors
def cancel(run_name: str, environment_name: str) -> None:
    """End RUN; what its nodes have finished stays, and a new run takes it from the cache."""
    from pipeline.kubeflow import watch

    client = shared.client_of(environment_name)
    run = _run(client, run_name)
    if run.state in watch.ENDED:
        raise MillraceError(f"{_own_name(run)} has ended already: {watch.WORDS[run.state]}.")
    client.cancel(run.run_id)
    click.echo(f"Cancelled  {_own_name(run)}")
