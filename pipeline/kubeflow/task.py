"""What a task's container runs around the command that does its work."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from components.errors import MillraceError, SettingsError
from metadata.contents.reading import ContentError
from pipeline import environment as environments
from pipeline import reports, stores, warm
from pipeline.environment import Environment
from pipeline.kubeflow import outputs, tasks
from pipeline.kubeflow.outputs import ExecutorInput
from pipeline.kubeflow.settings import VERDICT_TASK
from pipeline.kubeflow.tasks import Work

ATTEMPT_VARIABLE = "KFP_RETRY_INDEX"
"""0 at a task's first attempt; Kubeflow Pipelines sets it from 2.17 on."""

SIGNALLED = 128
EXIT_KILLED = SIGNALLED + signal.SIGKILL
EXIT_AGAIN = {75, 130, 143, EXIT_KILLED}
"""Of `millrace node run`, where another attempt may succeed: the store was away, or the task was stopped or killed."""


def run(executor_input: str, command: Sequence[str]) -> int:
    """Runs the command, and tells Kubeflow of what was made.

    Args:
        executor_input: The text that Kubeflow's launcher gives.
        command: What `tasks.words` made; the settings that were given to the run follow it.

    Returns:
        The command's exit code.

    Raises:
        SettingsError: One of these is not what Kubeflow's launcher gives.
    """
    given = ExecutorInput.parse(executor_input)
    work = _named(tasks.parse(command), given)
    environment = environments.load(work.environment)
    given_up = environment.log_root / work.run / f"{work.task}.given_up.json"
    if (before := _given_up(given_up)) is not None:
        click.echo(f"Not tried again: it cannot help. The first attempt ended with exit code {before}.", err=True)
        return before
    settings = _settings(given) if work.task != VERDICT_TASK else []
    code = _call([*tasks.words(work), *settings])
    if code == 0:
        _tell(given, work, environment)
    elif code not in EXIT_AGAIN:
        # Kubeflow knows no exit codes, and would try again whatever they say.
        given_up.parent.mkdir(parents=True, exist_ok=True)
        given_up.write_text(json.dumps({"exit_code": code}), encoding="utf-8")
    return code


def _call(words: Sequence[str]) -> int:
    """Runs a command to its end, which a signal to this process asks it for."""
    process = warm.start(words, os.environ)

    def hand_on(number: int, _frame: FrameType | None) -> None:
        # A terminal sends Ctrl-C to both.
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        code = process.wait()
        # As a shell tells the signal that ended a command.
        return code if code >= 0 else SIGNALLED - code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _named(work: Work, given: ExecutorInput) -> Work:
    """The work, in a run that has a name."""
    if work.run:
        return work
    job = str(given.parameters.get(tasks.JOB_PARAMETER, ""))
    if not job or "{{" in job:
        raise SettingsError(
            f"the run has no name: the pipeline's parameter {tasks.RUN_PARAMETER} is empty, and Kubeflow Pipelines "
            f"gives {job!r} for the run's id.",
            "Use Kubeflow Pipelines 2.5 or newer, or name each run.",
        )
    return replace(work, run=tasks.named_by(work.recipe, job))


def _given_up(path: Path) -> int | None:
    """The exit code of an earlier attempt of this very task that cannot succeed when it is repeated."""
    if int(os.environ.get(ATTEMPT_VARIABLE) or 0) == 0 or not path.exists():
        return None
    return int(json.loads(path.read_text(encoding="utf-8"))["exit_code"])


def _settings(given: ExecutorInput) -> list[str]:
    """The words for the run's parameters."""
    listed: Any = given.parameters.get(tasks.SET_PARAMETER, [])
    if not isinstance(listed, list) or not all(isinstance(override, str) for override in listed):
        raise SettingsError(
            f"the pipeline's parameter {tasks.SET_PARAMETER} is {listed!r}, expected a list of texts KEY=VALUE.",
            'Write for example ["trainer.epochs=3"].',
        )
    span = given.parameters.get(tasks.SPAN_PARAMETER, "")
    overrides = [*([f"data.span={span}"] if span else []), *listed]
    return [word for override in overrides for word in ("--set", override)]


def _tell(given: ExecutorInput, work: Work, environment: Environment) -> None:
    """Tells Kubeflow what was made; the work is done, and no fault in telling what nobody waits for undoes it."""
    try:
        store = stores.opened(environment)
        if store is None:
            raise MillraceError("the metadata store is empty.")
        found, parameters = outputs.collect(store, work, reports.path_of(environment, work.run))
        outputs.write(given, found, parameters)
    except (MillraceError, ContentError, OSError) as error:
        if given.awaited:
            raise
        click.echo(f"Done, but Kubeflow's pages will not show what was made: {error}", err=True)
