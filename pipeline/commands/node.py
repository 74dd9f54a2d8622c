"""`millrace node run`: one node of a run, for a scheduler."""

from __future__ import annotations

import os
import sys

import click

from components.trainer.processes import Launcher
from contracts.errors import BusyError, ClusterError, EngineError, MillraceError, SettingsError, StoreError
from pipeline.commands.options import (
    ENVIRONMENT_OPTION,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_SETTINGS,
    EXIT_TRY_AGAIN,
    SET_OPTION,
    print_error,
    reports_errors,
)
from pipeline.plan import nodes
from pipeline.run import node as node_runs
from pipeline.run import progress
from pipeline.run.command_lines import display_path
from pipeline.run.context import RunContext

EXIT_TERMINATED = 143


@click.group()
def node() -> None:
    """Run the nodes of a pipeline one by one, each in its own process."""


@node.command("run")
@click.argument("recipe_name", metavar="RECIPE")
@click.argument("node_name", metavar="NODE")
@click.option("--run", "run_id", required=True, metavar="RUN", help="The run's id; its first node creates it.")
@SET_OPTION
@click.option("--force", is_flag=True, help="Run it even if nothing that it depends on changed.")
@ENVIRONMENT_OPTION
@reports_errors
def run_node(
    recipe_name: str, node_name: str, run_id: str, overrides: tuple[str, ...], force: bool, environment_name: str
) -> None:
    """Run NODE of RECIPE in the run RUN, as `millrace run` would; what succeeded in that run is not run again.

    \b
    Exit codes: 0 succeeded, 1 the node failed, 2 wrong settings or nodes before it
    have not succeeded, 75 try again (metadata store, Flink or cluster is down, or
    another process is running it), 130 interrupted, 143 terminated.
    """
    context = RunContext.create(recipe_name, overrides, environment_name, run_id, force=force)
    name = nodes.find(node_name, context.recipe.settings.nodes)
    nodes.check_present(context.recipe, name)
    began_light = "tensorflow" not in sys.modules
    _leave(_run(context, name), began_light)


def training_launcher(context: RunContext, node_name: str) -> Launcher | None:
    """The launcher for distributed training in pods, if Kubernetes schedules the nodes.

    Returns:
        None if the processes run on this machine, and for a node that does not train.

    Raises:
        SettingsError: The pods cannot train with these settings, or would not see the files.
    """
    settings = context.environment.kubeflow
    if settings is None or node_name != nodes.TRAINER_NODE:
        return None
    from pipeline.schedule.kubeflow import training
    from pipeline.schedule.kubeflow.training_job import TrainingJob

    trainer = context.recipe.settings.trainer
    training.check_trainer(trainer, settings)
    training.check_shared_files(trainer, context.environment, settings)
    return TrainingJob(context.recipe.name, context.run_id, settings)


def _run(context: RunContext, node_name: str) -> int:
    """Runs the node, reports how it ended, and returns the exit code."""
    try:
        with node_runs.stopped_by_the_scheduler():
            task = node_runs.Task(context, node_name, training_launcher(context, node_name))
            done = node_runs.run(task)
    except MillraceError as error:
        print_error(error)
        return exit_code(error)
    except node_runs.StoppedError:
        click.echo("Stopped. Nothing half done is left; the same command goes on.")
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        click.echo("Stopped. Nothing half done is left; the same command goes on.")
        return EXIT_INTERRUPTED
    _report_end(task, done)
    return 0


def exit_code(error: MillraceError) -> int:
    """The exit code that tells a scheduler whether to run the node again."""
    if isinstance(error, (BusyError, ClusterError, EngineError, StoreError)):
        return EXIT_TRY_AGAIN
    return EXIT_SETTINGS if isinstance(error, SettingsError) else EXIT_ERROR


def _report_end(task: node_runs.Task, done: node_runs.Done) -> None:
    if not done.new:
        click.echo(f"{task.node} succeeded in run {task.run_id} before; nothing to do.")
        return
    lasted = "" if done.record.state == "CACHED" else f" in {done.record.seconds:.1f} s"
    click.echo(f"{task.node} {progress.state_of(done.record)}{lasted}")
    click.echo(f"Log        {display_path(task.log_path)}")


def _leave(code: int, began_light: bool) -> None:
    if "tensorflow" not in sys.modules or not began_light:
        sys.exit(code)
    # Without cleanup: tearing down TensorFlow and Beam takes over a second and ends in a traceback from TensorFlow.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
