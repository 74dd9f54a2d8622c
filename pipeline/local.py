"""Runs a recipe's pipeline on Beam on this machine: checks it, starts the worker process, watches it, tells its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from components.errors import NodeError, SettingsError
from components.example_gen.files import InputFiles
from metadata import files
from metadata.connection import BUSY
from metadata.store import ArtifactRecord, NodeRun, Store
from pipeline import beam, checks, engines, fingerprint, leftovers, lock, nodes, progress, reports, stores, worker
from pipeline.environment import Environment
from pipeline.recipe import PROJECT_ROOT, Recipe

POLL_SECONDS = 0.4


@dataclass(frozen=True)
class Run:
    """A finished run, or the one that already did the same work.

    Attributes:
        id: The run's id.
        nodes: Its node runs by node.
        new: Whether anything was run for it.
    """

    id: str
    nodes: Mapping[str, NodeRun]
    new: bool


def run(
    recipe: Recipe,
    environment: Environment,
    request: worker.Request,
    inputs: InputFiles,
    view: progress.View,
) -> Run:
    """Brings the pipeline's results up to date.

    Raises:
        MillraceError: Another run of the recipe is going on.
        NodeError: A node failed.
        KeyboardInterrupt: The user stopped the run; nothing half done is left.
    """
    prints = fingerprint.fingerprints(recipe, environment, inputs)
    with lock.held(recipe.name, environment):
        _sweep(recipe, environment)
        if not (request.from_node or request.to_node or request.force):
            current = up_to_date(recipe, environment, prints)
            if current is not None:
                return current
        _check_earlier_run(recipe, environment, request)
        # Only now, for what was checked before the last run need not be checked again while nothing changed.
        checks.check(recipe, inputs)
        settled, why = beam.settle(environment.beam, inputs)
        engines.reach(settled)
        if why is not None:
            view.announce(why)
        return _start_and_watch(recipe, environment, request, view)


def _check_earlier_run(recipe: Recipe, environment: Environment, request: worker.Request) -> None:
    store = stores.opened(environment)
    if request.from_node and not (store and store.run_ids(recipe.name)):
        raise SettingsError(
            f"--from {request.from_node} takes what comes before it from the last run, "
            f"and {recipe.name} has not run yet.",
            "Run it without --from first.",
        )
    if store and request.from_node:
        _check_taken_over(recipe, request.from_node, store)


def _check_taken_over(recipe: Recipe, from_node: str, store: Store) -> None:
    """What comes before the first node must have succeeded in the last run, of which it is taken."""
    latest = store.run_ids(recipe.name)[0]
    there = {node for node, record in store.node_runs(recipe.name, latest).items() if record.succeeded}
    missing = [node for node in nodes.taken_over(recipe, from_node) if node not in there]
    if missing:
        raise SettingsError(
            f"--from {from_node} takes what comes before it from the last run, and run {latest} has no result of "
            f"{', '.join(missing)}.",
            "Run it without --from: what has not changed is taken from the cache.",
        )


def up_to_date(recipe: Recipe, environment: Environment, prints: Mapping[str, fingerprint.Fingerprint]) -> Run | None:
    """The latest run, if every node of it has today's fingerprint, succeeded, and still has all its outputs."""
    store = stores.opened(environment)
    latest = store.run_ids(recipe.name)[:1] if store else []
    if store is None or not latest:
        return None
    nodes = store.node_runs(recipe.name, latest[0])
    outputs: list[ArtifactRecord] = []
    for node, wanted in prints.items():
        record = nodes.get(node)
        if record is None or not record.succeeded or record.properties.get(fingerprint.PROPERTY) != wanted.to_json():
            return None
        outputs += [artifact for artifacts in store.outputs(record.id).values() for artifact in artifacts]
    pushed = [place for artifact in outputs if (place := artifact.properties.get("pushed_destination"))]
    if not all(Path(place).exists() for place in pushed) or files.gone({artifact.uri for artifact in outputs}):
        return None
    return Run(latest[0], nodes, new=False)


def _start_and_watch(recipe: Recipe, environment: Environment, request: worker.Request, view: progress.View) -> Run:
    run_folder = environment.log_root / request.run_id
    run_folder.mkdir(parents=True)
    request_path = run_folder / worker.REQUEST_FILE
    request_path.write_text(request.model_dump_json(indent=2), encoding="utf-8")
    stores.prepare(environment)
    with tempfile.TemporaryDirectory(prefix="millrace-", ignore_cleanup_errors=True) as temporary:
        process = _start(request_path, temporary)
        try:
            with view:
                # Now, while the worker loads TensorFlow; at the end the user waits for it.
                reports.prepare()
                while not _ended(process):
                    # A server that is away is the worker's trouble; here it costs one look.
                    with suppress(*stores.LOST):
                        view.update(_nodes(recipe, environment, request.run_id), run_folder)
                nodes = stores.patiently(environment, lambda: _nodes(recipe, environment, request.run_id))
                view.update(nodes, run_folder)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.returncode < 0:
                _sweep(recipe, environment)
    _raise_failure(nodes, run_folder, process.returncode)
    return Run(request.run_id, nodes, new=True)


def _start(request_path: Path, temporary: str) -> subprocess.Popen[bytes]:
    """Starts the worker; its temporary files are ours to remove, for it does not end as Python programs do."""
    with (request_path.parent / worker.WORKER_LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "pipeline.worker", str(request_path)],
            cwd=PROJECT_ROOT,
            env={**os.environ, "TMPDIR": temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            # Its own group: Ctrl-C reaches this process first, which then ends the whole group.
            start_new_session=True,
        )


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Waits for the next look at the run; returns at once when the process ends."""
    try:
        process.wait(timeout=POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _nodes(recipe: Recipe, environment: Environment, run_id: str) -> dict[str, NodeRun]:
    try:
        store = stores.opened(environment)
        return store.node_runs(recipe.name, run_id) if store else {}
    except BUSY:
        # The worker has the file but not yet its tables, or holds its lock; the next look will see more.
        return {}


def _raise_failure(nodes: Mapping[str, NodeRun], run_folder: Path, exit_code: int) -> None:
    failure_path = run_folder / worker.FAILURE_FILE
    if failure_path.exists():
        failure = json.loads(failure_path.read_text(encoding="utf-8"))
        node, message = failure["node"], failure["message"]
        lines = "".join(f"\n  {line}" for line in failure["lines"])
        what = f"{node} failed.\n{message}{lines}\n\nLog: {worker.log_path(run_folder, node)}"
        raise NodeError(what, kind=failure["kind"])
    failed = [record.node for record in nodes.values() if not record.succeeded]
    if exit_code < 0:
        raise NodeError(
            f"{failed[0] if failed else 'The pipeline'} was ended from outside, by {signal.Signals(-exit_code).name}; "
            "the system does that when memory runs out."
        )
    if failed or exit_code:
        log = worker.log_path(run_folder, failed[0]) if failed else run_folder / worker.WORKER_LOG
        what = f"{failed[0]} failed" if failed else f"the pipeline could not be run (exit code {exit_code})"
        raise NodeError(f"{what}.\n{last_line(log)}\n\nLog: {log}")


def last_line(path: Path) -> str:
    """What a log ends with."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "It left no output.")


def _sweep(recipe: Recipe, environment: Environment) -> None:
    leftovers.sweep(recipe.name, environment)


def new_run_id(recipe: Recipe) -> str:
    """A run id that sorts by time, such as `taxi-20261121-041502`."""
    return f"{recipe.name}-{time.strftime('%Y%m%d-%H%M%S')}"
