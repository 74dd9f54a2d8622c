"""`millrace runs`, `millrace status` and `millrace artifacts`: what happened."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.text import Text

from contracts.errors import MillraceError
from contracts.near_names import did_you_mean
from metadata.connection import BUSY
from metadata.queries import PAGE, Queries
from metadata.records import NodeRun, RunRecord
from metadata.values import STATES, artifact_values, node_values, run_values
from pipeline.commands import lookup
from pipeline.commands.lookup import JSON_OPTION
from pipeline.commands.options import ENVIRONMENT_OPTION, reports_errors
from pipeline.plan import nodes
from pipeline.run import lock, progress
from pipeline.run.command_lines import display_path
from pipeline.run.workplace import Workplace

POLL_SECONDS = 1.0
STYLES = progress.STYLES | {"starting": "dim"}
LIMIT_OPTION = click.option(
    "--limit", type=click.IntRange(min=1), default=PAGE, show_default=True, help="How many at most."
)


@click.command()
@click.argument("recipe_name", metavar="[RECIPE]", required=False)
@LIMIT_OPTION
@JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def runs(recipe_name: str | None, limit: int, as_json: bool, environment_name: str) -> None:
    """List the runs, newest first, and what is deployed."""
    store = lookup.open_store(Workplace.load(environment_name))
    page = store.runs(recipe_name, limit)
    served = {(d.pushed_by.pipeline, d.version): d for d in store.deployed() if d.pushed_by}
    if as_json:
        lookup.print_json(
            [run_values(run) | {"deployed": (run.pipeline, run.pushed_version) in served} for run in page]
        )
        return
    headings = ("Run", "Recipe", "Started", "Time", "State", "Ran", "Cached", "Failed", "Pushed", "")
    table = lookup.make_table("Runs", headings, right=("Time", "Ran", "Cached", "Failed"))
    for run in page:
        values = run_values(run)
        state = values["state"]
        numbers = [str(values[name]) for name in ("ran", "cached", "failed")]
        deployed = Text("deployed", style="bold green") if (run.pipeline, run.pushed_version) in served else ""
        lasted = "" if values["seconds"] is None else f"{values['seconds']:.1f} s"
        started = lookup.local_time(run.started)
        styled = Text(state, style=STYLES[state])
        table.add_row(run.id, run.pipeline, started, lasted, styled, *numbers, run.pushed_version or "", deployed)
    lookup.print_wide(table)
    for deployment in served.values():
        if deployment.restored:
            click.echo(
                f"Deployed   {display_path(deployment.folder)}: version {deployment.version}, "
                f"a rollback to {deployment.restored}"
            )


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=lookup.complete_runs)
@click.option("--follow", is_flag=True, help="Keep showing it until the run ends.")
@JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def status(run_id: str | None, follow: bool, as_json: bool, environment_name: str) -> None:
    """Show the nodes of RUN, or of the latest run, with state and time."""
    workplace = Workplace.load(environment_name)
    run = lookup.find_run(lookup.open_store(workplace), run_id)
    if follow and not as_json:
        run = _follow(workplace, run)
    elif follow:
        while _is_going_on(workplace, run):
            time.sleep(POLL_SECONDS)
            run = _reread(workplace, run)
    if as_json:
        lookup.print_json(run_values(run) | {"nodes": [node_values(node) for node in run.nodes]})
        return
    state = STATES[run.state]
    table = lookup.make_table(f"{run.id}: {state}", ("Node", "State", "Time", "Started"), right=("Time",))
    for node in _ordered(run):
        word = progress.state_of(node)
        started = lookup.local_time(node.started)
        lasted = f"{node.seconds:.1f} s" if node.ended is not None and node.state != "CACHED" else ""
        table.add_row(node.node, Text(word, style=progress.STYLES[word]), lasted, started)
    lookup.print_wide(table)


def _follow(workplace: Workplace, run: RunRecord) -> RunRecord:
    folder = workplace.run_folder(run.id)
    with progress.View(Console(), run.id, nodes.all_names(run.pipeline)) as view:
        while True:
            view.update({node.node: node for node in run.nodes}, folder)
            if not _is_going_on(workplace, run):
                return run
            time.sleep(POLL_SECONDS)
            run = _reread(workplace, run)


def _is_going_on(workplace: Workplace, run: RunRecord) -> bool:
    """Whether a run is going on; between two nodes, only the lock tells that it has not ended."""
    if run.goes_on:
        return True
    newest = workplace.patiently(lambda: lookup.open_store(workplace).run_ids(run.pipeline)[:1])
    folder = workplace.run_folder(run.id).path
    return newest == [run.id] and lock.is_held(run.pipeline, workplace.environment, folder)


def _reread(workplace: Workplace, run: RunRecord) -> RunRecord:
    """The current state of the run; its last known state if the store is busy."""
    try:
        return workplace.patiently(lambda: lookup.open_store(workplace).run(run.id)) or run
    except (MillraceError, *BUSY) as error:
        if not isinstance(error.__cause__ if isinstance(error, MillraceError) else error, BUSY):
            raise
        return run


def _ordered(run: RunRecord) -> list[NodeRun]:
    order = {name: index for index, name in enumerate(nodes.all_names(run.pipeline))}
    return sorted(run.nodes, key=lambda node: order.get(node.node, len(order)))


@click.command()
@click.argument("type_name", metavar="[TYPE]", required=False, shell_complete=lookup.complete_types)
@LIMIT_OPTION
@JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def artifacts(type_name: str | None, limit: int, as_json: bool, environment_name: str) -> None:
    """List the artifacts, newest first, with what made them and their properties."""
    store = lookup.open_store(Workplace.load(environment_name))
    _check_type(store, type_name)
    page = store.artifacts(type_name, limit)
    if as_json:
        lookup.print_json([artifact_values(entry) for entry in page])
        return
    shown = lookup.make_table("Artifacts", ("Id", "Type", "Made", "Run", "Node", "Where"), right=("Id",))
    for entry in page:
        record, place = entry.artifact, entry.place
        where = display_path(record.uri)
        run, node = (place.run or "", place.node) if place else ("", "")
        shown.add_row(str(record.id), record.type, lookup.local_time(record.created), run, node, where)
    lookup.print_wide(shown)


def _check_type(store: Queries, type_name: str | None) -> None:
    type_names = store.artifact_types()
    if type_name is not None and type_name not in type_names:
        raise MillraceError(f"no artifacts of type {type_name!r}. {did_you_mean(type_name, type_names)}")
