"""Runs one node of a run in this process: what any scheduler calls, one process per task.

It runs the node as a local run does: the same pipeline, driver, cache, fingerprint and log. Whoever holds a task's lock
knows that no other process runs that node of that run, so anything unfinished was left by a killed process.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from components.trainer.processes import Launcher
from contracts.errors import ClusterError, MillraceError, NodeError, SettingsError, StoreError
from metadata.store import NodeRun
from pipeline.plan import beam, fingerprint, nodes, preflight
from pipeline.plan.fingerprint import Fingerprint
from pipeline.run import lock
from pipeline.run.context import RunContext
from pipeline.run.failures import describe_failure, node_error
from pipeline.run.folder import last_line, redirect_output
from pipeline.run.lean_imports import lean
from pipeline.run.workplace import LOST

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class StoppedError(KeyboardInterrupt):
    """The scheduler asked this process to stop, by SIGTERM."""


@dataclass(frozen=True)
class Task:
    """One node of one run.

    Attributes:
        context: The run, as `millrace run` would create it.
        node: The node's id.
        launcher: Starts the processes of distributed training; None: on this machine.
    """

    context: RunContext
    node: str
    launcher: Launcher | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.context.run_id

    @property
    def log_path(self) -> Path:
        """The node's log."""
        return self.context.folder.log_path(self.node)

    def sweep_leftovers(self, still_writing: bool = False) -> None:
        """Cancels what a killed process left unfinished of this node; see `Workplace.sweep_leftovers`."""
        self.context.workplace.sweep_leftovers(self.context.recipe.name, self.run_id, self.node, still_writing)


@dataclass(frozen=True)
class Done:
    """A node that succeeded.

    Attributes:
        record: Its execution.
        new: Whether it was run now.
    """

    record: NodeRun
    new: bool


def run(task: Task) -> Done:
    """Runs a node, unless it has already succeeded in this run.

    Raises:
        SettingsError: The node cannot run in this run: nodes before it have not succeeded, it succeeded with other
            settings or code, or the run is another recipe's.
        BusyError: Another process runs this node of this run, or holds the recipe's lock exclusively.
        StoreError: The metadata store cannot be reached.
        ClusterError: The cluster that trains cannot be reached.
        NodeError: The node failed.
        KeyboardInterrupt: The user or the scheduler stopped it; nothing half done is left behind.
    """
    check_run_id(task.run_id)
    context = task.context
    prints = context.fingerprints
    context.workplace.prepare_store()
    with lock.shared(context.recipe.name, context.environment), lock.task(context.folder.path, task.node):
        earlier = _earlier_success(task, _nodes(task), prints.get(task.node))
        if earlier is not None:
            return Done(earlier, new=False)
        preflight.check(context.recipe, context.inputs)
        if nodes.table(context.recipe)[task.node].uses_beam:
            beam.reach_engine(context.engine[0])
        if not context.folder.request_path.exists():
            context.folder.write_request(context.request)
        task.sweep_leftovers()
        try:
            _work(task, prints)
        except KeyboardInterrupt:
            task.sweep_leftovers(still_writing=True)
            raise
        record = context.workplace.patiently(lambda: _nodes(task)).get(task.node)
    if record is None or not record.succeeded:
        raise NodeError(f"{task.node} failed.\n{last_line(task.log_path)}\n\nLog: {task.log_path}")
    return Done(record, new=True)


def check_run_id(run_id: str) -> None:
    """Checks that a run id can be a folder's name.

    Raises:
        SettingsError: It cannot.
    """
    if not RUN_ID.fullmatch(run_id):
        raise SettingsError(
            f"--run: received {run_id!r}, expected letters, digits, `_`, `-` and `.`.", "Choose an id such as taxi-1."
        )


def _nodes(task: Task) -> Mapping[str, NodeRun]:
    """The run's node runs, as recorded in the store.

    Raises:
        SettingsError: The run is another recipe's.
    """
    recipe = task.context.recipe.name
    store = task.context.workplace.open_store()
    run = store.run(task.run_id) if store else None
    if run is None:
        return {}
    if run.pipeline != recipe:
        raise SettingsError(f"run {task.run_id} is a run of {run.pipeline}, not of {recipe}.", "Choose another --run.")
    return {record.node: record for record in run.nodes}


def _earlier_success(task: Task, records: Mapping[str, NodeRun], wanted: Fingerprint | None) -> NodeRun | None:
    """The node's execution, if it has already succeeded in this run."""
    record = records.get(task.node)
    if record is None or not record.succeeded:
        return None
    if wanted is not None and record.properties.get(fingerprint.PROPERTY) != wanted.to_json():
        raise SettingsError(
            f"{task.node} ran in run {task.run_id} already, with other settings, code, packages or data.",
            "Begin a run with another id.",
        )
    return record


def _work(task: Task, prints: Mapping[str, Fingerprint]) -> None:
    """Imports TFX and runs the node; all output goes to its log."""
    context = task.context.patient()
    with ExitStack() as stack:
        stack.enter_context(_temporary_folder())
        stack.enter_context(redirect_output(task.log_path))
        stack.enter_context(_translated(task))
        with lean():
            from pipeline.run import tfx_adapter
        compiled = tfx_adapter.compile_pipeline(context)
        _check_upstream(task, tfx_adapter.upstream_nodes(compiled, task.node))
        stack.enter_context(_exclusively(task, prints))
        tfx_adapter.run_node(compiled, task.node, context, task.launcher)


@contextmanager
def _temporary_folder() -> Iterator[None]:
    """Keeps temporary files in one folder, removed with the node: its process exits without Python's cleanup."""
    with tempfile.TemporaryDirectory(prefix="millrace-", ignore_cleanup_errors=True) as folder:
        before = os.environ.get("TMPDIR"), tempfile.tempdir
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before[1]
            if before[0] is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before[0]


def _check_upstream(task: Task, upstream: list[str]) -> None:
    records = task.context.workplace.patiently(lambda: _nodes(task))
    missing = [node for node in upstream if node not in records or not records[node].succeeded]
    if missing:
        states = ", ".join(f"{node} ({records[node].state if node in records else 'not begun'})" for node in missing)
        raise SettingsError(
            f"{task.node} comes after nodes that have not succeeded in run {task.run_id}: {states}.", "Run them first."
        )


@contextmanager
def _exclusively(task: Task, prints: Mapping[str, Fingerprint]) -> Iterator[None]:
    """Keeps two runs of a recipe from training in one checkpoint folder, or pushing to one folder, at the same time."""
    folder = task.context.environment.state_root / task.context.recipe.name
    paths = {
        nodes.TRAINER_NODE: folder / "checkpoints" / f"{prints[nodes.TRAINER_NODE].digest}.lock",
        nodes.PUSHER_NODE: folder / ".push.lock",
    }
    if task.node not in paths:
        yield
        return
    with lock.wait_for(paths[task.node]):
        yield


@contextmanager
def _translated(task: Task) -> Iterator[None]:
    try:
        yield
    except (SettingsError, StoreError, ClusterError):
        raise
    except Exception as error:
        away = None if isinstance(error, MillraceError) else _cause_of_loss(error)
        if away is not None:
            raise StoreError(f"the metadata store went away: {away}.", "Run the node again.") from error
        raise node_error(describe_failure(task.node, error), task.log_path) from error


def _cause_of_loss(error: BaseException | None) -> BaseException | None:
    """The error, or the first of its causes, that says that the metadata store is down."""
    while error is not None and not isinstance(error, LOST):
        error = error.__cause__ or error.__context__
    return error


@contextmanager
def stopped_by_the_scheduler() -> Iterator[None]:
    """Treats SIGTERM like Ctrl-C: nothing half done is left behind."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
