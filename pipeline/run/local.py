"""Runs a recipe's pipeline on this machine: checks it, starts the worker process, watches it, reports its end."""

from __future__ import annotations

import hashlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from components.pusher import manifest
from contracts import atomic
from contracts.errors import NodeError, SettingsError
from contracts.failure import read_failure
from metadata.connection import BUSY
from metadata.records import changed_files
from metadata.store import ArtifactRecord, NodeRun, Store
from pipeline.plan import beam, fingerprint, nodes, preflight
from pipeline.plan.recipe import Recipe
from pipeline.run import lock, progress, reports, workers
from pipeline.run.context import RunContext
from pipeline.run.failures import node_error
from pipeline.run.folder import RunFolder, last_line
from pipeline.run.workers import Worker
from pipeline.run.workplace import LOST

POLL_SECONDS = 0.4

STANDBY_MINUTES = 10.0
"""How long a process stays on standby after a run that was started at a terminal."""

DISK_IS_FULL = 64 * 1024
"""Bytes; with fewer a node cannot even write down why it failed."""


@dataclass(frozen=True)
class Run:
    """A finished run, or an earlier one that already did the same work.

    Attributes:
        id: The run's id.
        nodes: Its node runs by node.
        new: Whether anything was run now.
    """

    id: str
    nodes: Mapping[str, NodeRun]
    new: bool


def run(context: RunContext, view: progress.View) -> Run:
    """Brings the pipeline's results up to date.

    Raises:
        MillraceError: Another run of the recipe is going on, or the metadata store is damaged.
        NodeError: A node failed.
        KeyboardInterrupt: The user stopped the run; nothing half done is left behind.
    """
    request = context.request
    with lock.held(context.recipe.name, context.environment), ExitStack() as stack:
        context.workplace.check_file(whole=True)
        context.sweep_leftovers()
        _remove_temporary_files(context)
        if not (request.from_node or request.to_node or request.force) and _has_run(context):
            current = up_to_date(context, context.fingerprints)
            if current is not None:
                return current
        # Before the checks, so that it imports TensorFlow meanwhile.
        worker = stack.enter_context(_started_worker(context))
        _check_earlier_run(context)
        # Only now: while nothing has changed, the checks before the last run still hold.
        preflight.check(context.recipe, context.inputs)
        settings, why = context.engine
        beam.reach_engine(settings)
        for line in filter(None, (why, _gone_baseline(context), *_changed_outputs(context))):
            view.announce(line)
        return _watch(context, view, *worker)


def _has_run(context: RunContext) -> bool:
    store = context.workplace.open_store()
    return store is not None and bool(store.run_ids(context.recipe.name))


def _check_earlier_run(context: RunContext) -> None:
    """Checks that the last run has the results that a partial run takes from it."""
    from_node, recipe = context.request.from_node, context.recipe
    store = context.workplace.open_store()
    if from_node and not (store and store.run_ids(recipe.name)):
        raise SettingsError(
            f"--from {from_node} takes what comes before it from the last run, and {recipe.name} has not run yet.",
            "Run it without --from first.",
        )
    if store and from_node:
        _check_taken_over(recipe, from_node, store)


def _gone_baseline(context: RunContext) -> str | None:
    """A line about the served model, if its files are gone from the pipeline's folder; see components/baseline.py."""
    store = context.workplace.open_store()
    folder = str(context.environment.serving_root / context.recipe.name)
    served = next((entry for entry in store.deployed() if entry.folder == folder), None) if store else None
    if store is None or served is None or served.model is None or not Path(folder, served.version).exists():
        return None
    changed = changed_files([made.artifact for made in store.artifacts_by_id([served.model])], store.files)
    what = f"the candidate is not compared with the served model, version {served.version}"
    return next((f"{uri} {wrong}: {what}." for uri, wrong in changed.items()), None)


def _changed_outputs(context: RunContext) -> list[str]:
    """A line for each output of the last run, and pushed version, of which files were removed since."""
    store = context.workplace.open_store()
    latest = store.run_ids(context.recipe.name)[:1] if store else []
    if store is None or not latest:
        return []
    records = [record for record in store.node_runs(context.recipe.name, latest[0]).values() if record.succeeded]
    outputs = {artifact.uri: (artifact, record.node) for record in records for artifact in _outputs(store, record)}
    changed = changed_files([artifact for artifact, _ in outputs.values()], store.files)
    lines = [f"{uri} {what}: {outputs[uri][1]} does not take it from the cache." for uri, what in changed.items()]
    versions = _damaged_versions([artifact for artifact, _ in outputs.values()], context)
    return lines + [f"{folder} {what}: the Pusher pushes again." for folder, what in versions.items()]


def _damaged_versions(outputs: Iterable[ArtifactRecord], context: RunContext) -> dict[str, str]:
    """Which pushed versions are gone or no longer what was pushed, by folder, and how they differ."""
    pushed = [folder for artifact in outputs if (folder := artifact.properties.get("pushed_destination"))]
    memo = context.environment.state_root / context.recipe.name / "pushed_digests.json"
    return {folder: what for folder in pushed if (what := manifest.damage_of(Path(folder), memo))}


def _check_taken_over(recipe: Recipe, from_node: str, store: Store) -> None:
    latest = store.run_ids(recipe.name)[0]
    taken = nodes.taken_over(recipe, from_node)
    records = {node: record for node, record in store.node_runs(recipe.name, latest).items() if node in taken}
    succeeded = [record for record in records.values() if record.succeeded]
    outputs = {record.node: _outputs(store, record) for record in succeeded}
    changed = changed_files([artifact for made in outputs.values() for artifact in made], store.files)
    missing = [node for node in taken if node not in outputs or any(made.uri in changed for made in outputs[node])]
    if missing:
        raise SettingsError(
            f"--from {from_node} takes what comes before it from the last run, and run {latest} has no result of "
            f"{', '.join(missing)}.",
            "Run it without --from: what has not changed is taken from the cache.",
        )


def up_to_date(context: RunContext, prints: Mapping[str, fingerprint.Fingerprint]) -> Run | None:
    """The latest run, if each of its nodes has the current fingerprint, succeeded, and still has all its outputs."""
    recipe = context.recipe.name
    store = context.workplace.open_store()
    latest = store.run_ids(recipe)[:1] if store else []
    if store is None or not latest:
        return None
    records = store.node_runs(recipe, latest[0])
    outputs: list[ArtifactRecord] = []
    for node, wanted in prints.items():
        record = records.get(node)
        if record is None or not record.succeeded or record.properties.get(fingerprint.PROPERTY) != wanted.to_json():
            return None
        outputs += _outputs(store, record)
    if _damaged_versions(outputs, context) or changed_files(outputs, store.files):
        return None
    return Run(latest[0], records, new=False)


def _outputs(store: Store, record: NodeRun) -> list[ArtifactRecord]:
    return [artifact for artifacts in store.outputs(record.id).values() for artifact in artifacts]


@contextmanager
def _started_worker(context: RunContext) -> Iterator[tuple[Worker, Path]]:
    """A worker, and the folder of its temporary files; both are gone after the block."""
    minutes = context.environment.standby_minutes
    if minutes is None:
        minutes = STANDBY_MINUTES if sys.stdout.isatty() else 0
    with tempfile.TemporaryDirectory(prefix=_temporary_prefix(context), ignore_cleanup_errors=True) as temporary:
        worker = workers.start(Path(temporary), minutes)
        try:
            yield worker, Path(temporary)
        finally:
            worker.close()


def _watch(context: RunContext, view: progress.View, worker: Worker, temporary: Path) -> Run:
    folder = context.folder
    folder.path.mkdir(parents=True)
    folder.write_request(context.request)
    context.workplace.prepare_store()
    worker.begin(folder)
    try:
        with view:
            # Now, while the worker loads TensorFlow; at the end the user would have to wait for it.
            reports.prepare()
            while not worker.has_ended(POLL_SECONDS):
                # The worker deals with a server that is down; here it costs one update.
                with suppress(*LOST):
                    view.update(_nodes(context), folder)
            records = context.workplace.patiently(lambda: _nodes(context))
            view.update(records, folder)
    finally:
        worker.close()
        if worker.exit_code < 0:
            context.sweep_leftovers()
    failure = read_failure(folder.path) or read_failure(temporary)
    context.workplace.keep_copy()
    if failure is not None:
        raise node_error(failure, folder.log_path(failure.node))
    _raise_failure(records, folder, worker.exit_code)
    return Run(context.run_id, records, new=True)


def _temporary_prefix(context: RunContext) -> str:
    """What the names of temporary folders of this recipe's runs in this environment begin with."""
    place = str(context.environment.state_root / context.recipe.name)
    return f"millrace-{hashlib.sha256(place.encode()).hexdigest()[:12]}-"


def _remove_temporary_files(context: RunContext) -> None:
    """Removes what killed and failed runs of the recipe left; the caller holds the recipe's lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_temporary_prefix(context)}*"):
        shutil.rmtree(folder, ignore_errors=True)
    atomic.remove_abandoned(context.environment.state_root / context.recipe.name)
    # TFX makes one for each execution, and keeps it when that fails. Ours write nothing there.
    for working in (context.environment.pipeline_root / context.recipe.name).glob("*/.system/stateful_working_dir/*"):
        with suppress(OSError):
            working.rmdir()
    # Their names sort by time, and only the latest can have left anything.
    for log_folder in sorted(context.environment.log_root.glob(f"{context.recipe.name}-*"))[-1:]:
        atomic.remove_abandoned(log_folder)


def _nodes(context: RunContext) -> dict[str, NodeRun]:
    try:
        store = context.workplace.open_store()
        return store.node_runs(context.recipe.name, context.run_id) if store else {}
    except BUSY:
        # The worker has created the file but not yet its tables, or holds its lock; the next update will see more.
        return {}


def _raise_failure(records: Mapping[str, NodeRun], folder: RunFolder, exit_code: int) -> None:
    failed = [record.node for record in records.values() if not record.succeeded]
    if exit_code < 0:
        raise NodeError(
            f"{failed[0] if failed else 'The pipeline'} was ended from outside, by {signal.Signals(-exit_code).name}; "
            "the system does that when memory runs out."
        )
    if (failed or exit_code) and shutil.disk_usage(folder.path).free < DISK_IS_FULL:
        raise NodeError(f"No space left on device: {folder.path}. Make room there first.")
    if failed or exit_code:
        log = folder.log_path(failed[0]) if failed else folder.worker_log
        problem = f"{failed[0]} failed" if failed else f"the pipeline could not be run (exit code {exit_code})"
        raise NodeError(f"{problem}.\n{last_line(log)}\n\nLog: {log}")
