"""`millrace node run`: one node of a run, for a scheduler."""

from __future__ import annotations

import os
import sys

import click

from components.errors import BusyError, ClusterError, EngineError, MillraceError, SettingsError, StoreError
from pipeline import environment as environments
from pipeline import node as node_runs
from pipeline import nodes, outcome, progress, recipe, worker
from pipeline.commands.line import (
    ENVIRONMENT_OPTION,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_SETTINGS,
    SET_OPTION,
    reports_errors,
    tell,
)

EXIT_TRY_AGAIN = 75
"""BSD's EX_TEMPFAIL."""

EXIT_TERMINATED = 143


@click.group()
def node() -> None:
    """Run the nodes of a pipeline one by one, each as a process of its own."""


@node.command("run")
@click.argument("recipe_name", metavar="RECIPE")
@click.argument("node_name", metavar="NODE")
@click.option("--run", "run_id", required=True, metavar="RUN", help="The run's id; its first node begins it.")
@SET_OPTION
@click.option("--force", is_flag=True, help="Run it although nothing that it depends on changed.")
@ENVIRONMENT_OPTION
@reports_errors
def run_node(
    recipe_name: str, node_name: str, run_id: str, overrides: tuple[str, ...], force: bool, environment_name: str
) -> None:
    """Run NODE of RECIPE in the run RUN, as `millrace run` would; what succeeded in that run is not run again.

    \b
    Exit codes: 0 succeeded, 1 the node failed, 2 wrong settings or nodes before it
    have not succeeded, 75 try again (metadata store, Flink or cluster is away, or
    another process is at it), 130 interrupted, 143 terminated.
    """
    chosen = recipe.load(recipe_name, overrides)
    found = nodes.find(node_name)
    nodes.check_present(chosen, found)
    request = worker.Request(
        recipe=recipe_name,
        overrides=overrides,
        environment=environment_name,
        run_id=run_id,
        span=chosen.find_inputs().span,
        force=force,
    )
    task = node_runs.Task(chosen, environments.load(environment_name), found, request)
    began_light = "tensorflow" not in sys.modules
    _leave(_code(task), began_light)


def _code(task: node_runs.Task) -> int:
    """Runs the task, tells how it ended, and says with which exit code."""
    try:
        with node_runs.stopped_by_the_scheduler():
            done = node_runs.run(task)
    except MillraceError as error:
        tell(error)
        return exit_code(error)
    except node_runs.StoppedError:
        click.echo("Stopped. Nothing half done is left; the same command goes on.")
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        click.echo("Stopped. Nothing half done is left; the same command goes on.")
        return EXIT_INTERRUPTED
    _tell_end(task, done)
    return 0


def exit_code(error: MillraceError) -> int:
    """What tells a scheduler whether to run the node again."""
    if isinstance(error, (BusyError, ClusterError, EngineError, StoreError)):
        return EXIT_TRY_AGAIN
    return EXIT_SETTINGS if isinstance(error, SettingsError) else EXIT_ERROR


def _tell_end(task: node_runs.Task, done: node_runs.Done) -> None:
    if not done.new:
        click.echo(f"{task.node} succeeded in run {task.run_id} before; nothing to do.")
        return
    lasted = "" if done.record.state == "CACHED" else f" in {done.record.seconds:.1f} s"
    click.echo(f"{task.node} {progress.state_of(done.record)}{lasted}")
    click.echo(f"Log        {outcome.shown(worker.log_path(task.run_folder, task.node))}")


def _leave(code: int, began_light: bool) -> None:
    if "tensorflow" not in sys.modules or not began_light:
        sys.exit(code)
    # Taking TensorFlow and Beam apart again takes over a second and ends in a traceback of TensorFlow's own.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
