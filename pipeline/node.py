"""Runs one node of a run in this process: what any scheduler calls, a process a task.

It is the local run's node: the same pipeline, driver, cache, fingerprint and log. Whoever holds a task's lock knows
that no other process runs that node of that run, so that what is found unfinished there is what a killed one left.
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

from components.errors import ClusterError, MillraceError, NodeError, SettingsError, StoreError
from metadata.store import NodeRun
from pipeline import beam, checks, engines, fingerprint, leftovers, local, lock, nodes, stores, worker
from pipeline.environment import Environment
from pipeline.fingerprint import Fingerprint
from pipeline.recipe import Recipe

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
TRAINER_NODE = "Trainer"


class StoppedError(KeyboardInterrupt):
    """The scheduler asked this process to end, by SIGTERM."""


@dataclass(frozen=True)
class Task:
    """One node of one run.

    Attributes:
        recipe: The recipe.
        environment: Where it runs.
        node: The node's id.
        request: The run, as `millrace run` would ask for it.
    """

    recipe: Recipe
    environment: Environment
    node: str
    request: worker.Request

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.request.run_id

    @property
    def run_folder(self) -> Path:
        """Where the logs are."""
        return self.environment.log_root / self.run_id


@dataclass(frozen=True)
class Done:
    """A node that succeeded.

    Attributes:
        record: Its execution.
        new: Whether anything was done now.
    """

    record: NodeRun
    new: bool


def run(task: Task) -> Done:
    """Runs a node, where it has not succeeded in this run yet.

    Raises:
        SettingsError: The node cannot be run in this run: the nodes before it have not succeeded, it did with other
            settings or code, or the run is another recipe's.
        BusyError: Another process runs this node of this run, or the recipe alone.
        StoreError: The metadata store is away.
        ClusterError: The cluster that trains is away.
        NodeError: The node failed.
        KeyboardInterrupt: The user or the scheduler stopped it; nothing half done is left.
    """
    check_run_id(task.run_id)
    name, environment = task.recipe.name, task.environment
    inputs = task.recipe.find_inputs()
    prints = fingerprint.fingerprints(task.recipe, environment, inputs)
    stores.prepare(environment)
    with lock.shared(name, environment), lock.task(task.run_folder, task.node):
        earlier = _checked(task, _nodes(task), prints.get(task.node))
        if earlier is not None:
            return Done(earlier, new=False)
        checks.check(task.recipe, inputs)
        if task.node in nodes.BEAM_NODES:
            engines.reach(beam.settle(environment.beam, inputs)[0])
        _keep_request(task)
        leftovers.sweep(name, environment, task.run_id, task.node)
        try:
            _work(task, prints)
        except KeyboardInterrupt:
            leftovers.sweep(name, environment, task.run_id, task.node, still_writing=True)
            raise
        record = stores.patiently(environment, lambda: _nodes(task)).get(task.node)
    if record is None or not record.succeeded:
        log = worker.log_path(task.run_folder, task.node)
        raise NodeError(f"{task.node} failed.\n{local.last_line(log)}\n\nLog: {log}")
    return Done(record, new=True)


def _keep_request(task: Task) -> None:
    """What was asked for, for those that look at the run; the first of its tasks writes it."""
    path = task.run_folder / worker.REQUEST_FILE
    if not path.exists():
        partial = path.with_name(f".{task.node}.{path.name}")
        partial.write_text(task.request.model_dump_json(indent=2), encoding="utf-8")
        partial.replace(path)


def check_run_id(run_id: str) -> None:
    """Checks that a run's id can be a folder's name.

    Raises:
        SettingsError: It cannot.
    """
    if not RUN_ID.fullmatch(run_id):
        raise SettingsError(
            f"--run: received {run_id!r}, expected letters, digits, `_`, `-` and `.`.", "Choose an id such as taxi-1."
        )


def _nodes(task: Task) -> dict[str, NodeRun]:
    """The run's nodes, as they are in the store.

    Raises:
        SettingsError: It is a run of another recipe.
    """
    store = stores.opened(task.environment)
    found = store.run(task.run_id) if store else None
    if found is None:
        return {}
    if found.pipeline != task.recipe.name:
        raise SettingsError(
            f"run {task.run_id} is a run of {found.pipeline}, not of {task.recipe.name}.", "Choose another --run."
        )
    return {record.node: record for record in found.nodes}


def _checked(task: Task, before: Mapping[str, NodeRun], wanted: Fingerprint | None) -> NodeRun | None:
    """The node's execution, where it succeeded in this run already."""
    record = before.get(task.node)
    if record is None or not record.succeeded:
        return None
    if wanted is not None and record.properties.get(fingerprint.PROPERTY) != wanted.to_json():
        raise SettingsError(
            f"{task.node} ran in run {task.run_id} already, with other settings, code, packages or data.",
            "Begin a run with another id.",
        )
    return record


def _work(task: Task, prints: Mapping[str, Fingerprint]) -> None:
    """Imports TFX and runs the node; all that it prints is in its log."""
    os.environ[worker.RUN_FOLDER_VARIABLE] = str(task.run_folder)
    log = worker.log_path(task.run_folder, task.node)
    with ExitStack() as stack:
        stack.enter_context(_temporary_folder())
        stack.enter_context(worker.output_to(log))
        stack.enter_context(_translated(task))
        pipeline = worker.compiled(task.request)
        from pipeline import runner

        _check_upstream(task, runner.upstream(pipeline, task.node))
        stack.enter_context(_alone(task, prints))
        stack.enter_context(_training_pods(task))
        runner.run_node(pipeline, task.node, task.run_folder)


@contextmanager
def _temporary_folder() -> Iterator[None]:
    """Everything temporary in one folder, which goes with the node: its process does not end as Python programs do."""
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
    there = stores.patiently(task.environment, lambda: _nodes(task))
    missing = [node for node in upstream if node not in there or not there[node].succeeded]
    if missing:
        states = ", ".join(f"{node} ({there[node].state if node in there else 'not begun'})" for node in missing)
        raise SettingsError(
            f"{task.node} comes after nodes that have not succeeded in run {task.run_id}: {states}.", "Run them first."
        )


@contextmanager
def _alone(task: Task, prints: Mapping[str, Fingerprint]) -> Iterator[None]:
    """Keeps two runs of a recipe from training in one folder of checkpoints, or pushing to one folder, at once."""
    folder = task.environment.state_root / task.recipe.name
    paths = {
        TRAINER_NODE: folder / "checkpoints" / f"{prints[TRAINER_NODE].digest}.lock",
        nodes.PUSHER_NODE: folder / ".push.lock",
    }
    if task.node not in paths:
        yield
        return
    with lock.waited_for(paths[task.node]):
        yield


@contextmanager
def _training_pods(task: Task) -> Iterator[None]:
    """Has a training in several processes run in pods of its own, where Kubernetes schedules the nodes."""
    settings = task.environment.kubeflow
    if settings is None or task.node != TRAINER_NODE:
        yield
        return
    from components.trainer import launching
    from pipeline.kubeflow import training
    from pipeline.kubeflow.training_job import TrainingJob

    training.check(task.recipe.settings.trainer, settings)
    training.check_files(task.recipe.settings.trainer, task.environment, settings)
    with launching.by(TrainingJob(task.recipe.name, task.run_id, settings)):
        yield


@contextmanager
def _translated(task: Task) -> Iterator[None]:
    try:
        yield
    except MillraceError as error:
        if isinstance(error, (SettingsError, StoreError, ClusterError)):
            raise
        raise _failure(task, error) from error
    except Exception as error:
        if away := _store_that_is_away(error):
            raise StoreError(f"the metadata store went away: {away}.", "Run the node again.") from error
        raise _failure(task, error) from error


def _failure(task: Task, error: Exception) -> NodeError:
    failure = worker.describe_failure(task.node, error)
    lines = "".join(f"\n  {line}" for line in failure["lines"])
    log = worker.log_path(task.run_folder, task.node)
    return NodeError(f"{task.node} failed.\n{failure['message']}{lines}\n\nLog: {log}", kind=failure["kind"])


def _store_that_is_away(error: BaseException | None) -> BaseException | None:
    while error is not None and not isinstance(error, stores.LOST):
        error = error.__cause__ or error.__context__
    return error


@contextmanager
def stopped_by_the_scheduler() -> Iterator[None]:
    """Ends like Ctrl-C where SIGTERM comes: with nothing half done left."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
