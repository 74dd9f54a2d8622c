"""`millrace kubeflow …`: the pipeline scheduled on a cluster."""

from __future__ import annotations

import click

from pipeline.commands.kubeflow import inside, rehearse, runs, schedules


@click.group()
def kubeflow() -> None:
    """Schedule the pipeline on Kubeflow Pipelines: one container task per node."""


for command in (
    runs.compile_command,
    runs.submit,
    rehearse.rehearse,
    runs.status,
    runs.logs,
    runs.cancel,
    schedules.schedule,
    schedules.schedules,
    schedules.pause,
    schedules.resume,
    schedules.delete,
    inside.task,
    inside.verdict,
    inside.close,
):
    kubeflow.add_command(command)
