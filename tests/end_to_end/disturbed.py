"""A project in which runs are killed, and what such a run leaves, held against what a quiet one leaves."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from copied_project import TIME_LIMIT_SECONDS, Finished, Project
from results import digests_of, metrics

from metadata.connection import BUSY
from metadata.records import NodeRun
from metadata.store import Store
from pipeline.run.workplace import Workplace

HOOK = Path(__file__).with_name("moments")
ALWAYS_RUN = {"BaselineModel", "Pusher"}
UNENDED = {"NEW", "RUNNING", "KILLED"}
COMPARED = {
    "ExampleGen": "examples",
    "StatisticsGen": "statistics",
    "SchemaGen": "schema",
    "ExampleValidator": "anomalies",
    "Transform": "transform_graph",
    "Trainer": "model",
}
"""Outputs by node. Transform's rows are compared by the weights that were learned from them, and metrics as numbers."""

DIFFERENT = re.compile(r"saved_model\.pb|keras_metadata\.pb|fingerprint\.pb|card\.json|manifest\.json")
"""Files that no two runs write alike: they number the nodes of graphs, or know the time."""

APART = {
    "metadata.sqlite",
    "metadata.sqlite.copy",
    "failure.json",
    "report.log",
    "tensorboard",
    "pushed_digests.json",
}
"""What is elsewhere where the store is a server; what a failed run leaves to say why; TensorBoard's curves, which begin
anew when a training was interrupted; digests of what is served, which a run remembers that finds it there.
"""

METRICS_TOLERANCE = 1e-6
"""Relative; an evaluation's batches are as large as there is time, and float32 rounds differently in each."""


@dataclass(frozen=True)
class Quiet:
    """A run that nothing disturbed.

    Attributes:
        digests: Of what it made, by what it is.
        metrics: The model's.
        names: The files and folders that it left, without numbers.
        moments: Those at which something is written, in their order.
        seconds: How long it took.
    """

    digests: Mapping[str, str]
    metrics: Mapping[str, float]
    names: frozenset[str]
    moments: Sequence[str]
    seconds: float


class Disturbed:
    """A project of its own in which runs are disturbed.

    Args:
        folder: Where it and its temporary files are put.
        environment: An environment's file whose folders lie in `folder/project/artifacts`; None for the project's own.
    """

    def __init__(self, folder: Path, environment: Path | None = None) -> None:
        self.folder = folder
        self.project = Project(folder / "project")
        self.artifacts = self.project.folder / "artifacts"
        self._environment = environment
        self._temporary = folder / "temporary"
        self._temporary.mkdir()

    @property
    def store(self) -> Store | None:
        """The metadata store, or None while there is nothing in it."""
        if self._environment is not None:
            return Workplace.load(str(self._environment)).open_store()
        return self.project.store

    def start(self, kill: str = "") -> subprocess.Popen[str]:
        """Starts a run in a process group of its own; `kill` names the moment at which it is killed."""
        (self.folder / "processes").write_text("")
        noted = {"CHAOS_FOLDER": str(self.project.folder), "CHAOS_NOTES": str(self.folder), "CHAOS_KILL": kill}
        where = ["--env", str(self._environment)] if self._environment else []
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "pipeline.cli", "run", "taxi", *where],
            cwd=self.project.folder,
            env={**os.environ, "COLUMNS": "120", "PYTHONPATH": str(HOOK), "TMPDIR": str(self._temporary), **noted},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self) -> Finished:
        """Runs to the end."""
        return finish(self.start())

    def kill_at(self, moment: str | float) -> Finished:
        """Runs until a moment, or for so many seconds, and kills the process groups of the run."""
        process = self.start(moment if isinstance(moment, str) else "")
        if isinstance(moment, float):
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            for pid in map(int, (self.folder / "processes").read_text().split()):
                with suppress(ProcessLookupError):
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
        return finish(process)

    def complete(self) -> dict[str, list[int]]:
        """The executions that ended well, by node."""
        ended: dict[str, list[int]] = {}
        for record in self._executions():
            if record.state == "COMPLETE":
                ended.setdefault(record.node, []).append(record.id)
        return ended

    def _executions(self) -> list[NodeRun]:
        try:
            store = self.store
            runs = store.run_ids("taxi") if store else []
        except BUSY:
            # Killed while the tables were being made.
            return []
        return [record for run in runs if store for record in store.node_runs("taxi", run).values()]

    def quiet(self) -> Quiet:
        """Runs undisturbed."""
        started = time.monotonic()
        ended = self.run()
        assert ended.code == 0, ended.errors
        seconds = time.monotonic() - started
        moments = (self.folder / "moments").read_text().splitlines()
        return Quiet(*self.made(), self.names(), moments, seconds)

    def made(self) -> tuple[dict[str, str], dict[str, float]]:
        """Digests of the files of the newest run's outputs and of what is served, and the metrics."""
        store = self.store
        assert store is not None
        newest = store.run_ids("taxi")[0]
        records = store.node_runs("taxi", newest)
        folders = {node: Path(store.outputs(records[node].id)[output][0].uri) for node, output in COMPARED.items()}
        [folders["served"]] = (self.artifacts / "serving" / "taxi").iterdir()
        made = {f"{node} {name}": digest for node, at in folders.items() for name, digest in digests_of(at).items()}
        return {name: digest for name, digest in made.items() if not DIFFERENT.search(name)}, metrics(store, newest)

    def names(self) -> frozenset[str]:
        """The files and folders among artifacts and temporary files, without numbers."""
        paths = [*self.artifacts.rglob("*"), *self._temporary.rglob("*")]
        compared = [str(path.relative_to(self.folder)) for path in paths if APART.isdisjoint(path.parts)]
        return frozenset(re.sub(r"\d+", "N", re.sub(r"[0-9a-f]{16,}", "X", name)) for name in compared)

    def wrong(self, quiet: Quiet, complete_before: Mapping[str, list[int]]) -> Iterator[str]:
        """What is not as a quiet run leaves it.

        Args:
            quiet: Such a run.
            complete_before: The executions that had ended well when the run was disturbed.
        """
        digests, values = self.made()
        differing = sorted(name for name, _ in set(digests.items()) ^ set(quiet.digests.items()))
        if differing:
            yield f"differs: {', '.join(differing)}"
        if values.keys() != quiet.metrics.keys():
            yield f"metrics: {sorted(values)}"
        for name, value in values.items():
            if not math.isclose(value, quiet.metrics[name], rel_tol=METRICS_TOLERANCE):
                yield f"{name} is {value}, not {quiet.metrics[name]}"
        complete = self.complete()
        for node, executions in complete.items():
            if len(executions) > 1 and node in complete_before and node not in ALWAYS_RUN:
                yield f"{node} had finished, and ran again"
        yield from self._left_behind(quiet, complete)

    def _left_behind(self, quiet: Quiet, complete: Mapping[str, list[int]]) -> Iterator[str]:
        names = self.names()
        if left := sorted(names - quiet.names):
            yield f"left behind: {', '.join(left)}"
        if missing := sorted(quiet.names - names):
            yield f"missing: {', '.join(missing)}"
        if unended := [f"{record.node} {record.state}" for record in self._executions() if record.state in UNENDED]:
            yield f"never ended: {', '.join(unended)}"
        roots = self.artifacts / "pipelines" / "taxi"
        for node, executions in complete.items():
            folders = {int(path.name) for path in roots.glob(f"{node}/*/*") if path.name.isdigit()}
            if half := folders - set(executions):
                yield f"{node} left half made: {sorted(half)}"


def finish(process: subprocess.Popen[str]) -> Finished:
    """Waits for the end of a command."""
    output, errors = process.communicate(timeout=TIME_LIMIT_SECONDS)
    return Finished(process.returncode, output, errors)
