"""Shows a run on Kubeflow while it is going on, in the same table as a local run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import tenacity
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from contracts.errors import ClusterError
from pipeline.plan.kubeflow_settings import TASKS, VERDICT_TASK
from pipeline.run import progress
from pipeline.schedule.kubeflow import tasks
from pipeline.schedule.kubeflow.client import Client

POLL_SECONDS = 5.0
PATIENCE = 12
"""How many requests in a row may fail: the API may be down for a minute without any harm."""

ENDED = {"SUCCEEDED", "FAILED", "CANCELED", "SKIPPED"}
WORDS = {
    "PENDING": "waiting",
    "RUNNING": "running",
    "SUCCEEDED": "done",
    "FAILED": "failed",
    "CANCELING": "stopped",
    "CANCELED": "stopped",
    "SKIPPED": "skipped",
}
STYLES = {**progress.STYLES, "skipped": "dim"}


@dataclass(frozen=True)
class TaskState:
    """The state of a task.

    Attributes:
        name: The task.
        state: The state in the words of a local run.
        seconds: How long it has taken, or None while it waits.
        error: Kubeflow's message, if it failed.
    """

    name: str
    state: str
    seconds: float | None
    error: str | None = None


def task_states(run: Any, names: Sequence[str]) -> list[TaskState]:
    """The states of a run's tasks, in the order of `names`."""
    details = {
        detail.display_name: detail for detail in (run.run_details.task_details if run.run_details else None) or ()
    }
    return [_state(name, details.get(tasks.task_key(name))) for name in names]


def _state(name: str, detail: Any | None) -> TaskState:
    if detail is None:
        return TaskState(name, "waiting", None)
    state = WORDS.get(detail.state or "", "waiting")
    began, ended = detail.start_time or detail.create_time, detail.end_time
    # The API's end time is in 1970 for a task that has not ended.
    over = ended if ended and ended.year > 1970 else datetime.now(timezone.utc)
    seconds = (over - began).total_seconds() if began and state != "waiting" else None
    return TaskState(name, state, seconds, detail.error.message if detail.error else None)


def not_good_enough(run: Any) -> bool:
    """Whether a run succeeded but pushed nothing because the model was not good enough."""
    (verdict,) = task_states(run, [VERDICT_TASK])
    return verdict.state in ("done", "running", "failed")


def shown_names(names: Sequence[str], run: Any) -> list[str]:
    """The tasks that a table lists, without a conditional task that did not run.

    Nodes that only other recipes have are left out, too.
    """
    in_run = {detail.display_name for detail in (run.run_details.task_details if run.run_details else None) or ()}
    shown = [name for name in names if name in TASKS or tasks.task_key(name) in in_run]
    return [name for name in shown if name != VERDICT_TASK or not_good_enough(run)]


def task_table(now: Sequence[TaskState]) -> Table:
    """A table of a run's tasks."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("Task", "State", "Time"):
        table.add_column(heading, justify="right" if heading == "Time" else "left", header_style="dim")
    table.add_column("", overflow="fold")
    for task in now:
        lasted = "" if task.seconds is None else f"{task.seconds:.0f} s"
        table.add_row(task.name, Text(task.state, style=STYLES[task.state]), lasted, task.error or "")
    return table


class View:
    """Shows tasks while a run is going on: a table in a terminal, a line for each change elsewhere.

    Args:
        console: Where to show them.
        title: What is being run.
    """

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown: dict[str, str] = {}

    def __enter__(self) -> View:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, now: Sequence[TaskState]) -> None:
        """Shows the current state of the tasks."""
        if self._live:
            self._live.update(Group(Text(self._title, style="bold"), task_table(now)), refresh=True)
            return
        for task in now:
            if task.state != self._shown.get(task.name, "waiting"):
                self._shown[task.name] = task.state
                lasted = f"{task.seconds:.0f} s" if task.seconds is not None and task.state != "running" else ""
                line = f"  {task.name:<17} {task.state:<8} {lasted:>7} {task.error or ''}"
                self._console.print(line.rstrip(), highlight=False, soft_wrap=True)


def wait_for_end(client: Client, run_id: str, names: Sequence[str], view: View) -> Any:
    """Shows a run until it ends.

    Returns:
        The run at its end.

    Raises:
        ClusterError: The API stayed down.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(ClusterError),
        stop=tenacity.stop_after_attempt(PATIENCE),
        wait=tenacity.wait_fixed(POLL_SECONDS),
        reraise=True,
    )
    with view:
        while True:
            run = retrying(client.run, run_id)
            view.show(task_states(run, shown_names(names, run)))
            if run.state in ENDED:
                return run
            time.sleep(POLL_SECONDS)
