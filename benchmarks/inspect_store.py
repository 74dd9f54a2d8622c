"""Measures the queries behind `millrace runs`, `artifacts` and `lineage`, and the pages of `millrace inspect`.

    python -m benchmarks.inspect_store

prints the median of each page in milliseconds, on a store of 10,000 executions made for it in a temporary folder. The
dashboard is restarted for every request except that of the last line, so that nothing is cached.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata import connection as connections
from metadata import lineage
from metadata.queries import Queries

CHAIN: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "ExampleGen": ((), (("examples", "Examples"), ("rejected_rows", "RejectedRows"))),
    "StatisticsGen": (("examples",), (("statistics", "ExampleStatistics"),)),
    "SchemaGen": ((), (("schema", "Schema"),)),
    "ExampleValidator": (("statistics", "schema"), (("anomalies", "ExampleAnomalies"),)),
    "DataGate": (("anomalies",), (("verdict", "GateVerdict"),)),
    "Transform": (("examples", "schema"), (("transform_graph", "TransformGraph"),)),
    "Trainer": (("examples", "transform_graph"), (("model", "Model"), ("model_run", "ModelRun"))),
    "Evaluator": (("examples", "model"), (("evaluation", "ModelEvaluation"), ("blessing", "ModelBlessing"))),
    "InfraValidator": (("model",), (("infra_blessing", "InfraBlessing"),)),
    "Pusher": (("model", "blessing", "infra_blessing"), (("pushed_model", "PushedModel"),)),
}
"""The nodes of a run with the names of their inputs, and the names and types of their outputs."""

BATCH = 1_000
REPETITIONS = 7
PROCESSES = 3


def write(path: Path, runs: int = 1_000, pipeline: str = "taxi") -> None:
    """Writes an SQLite store of `runs` runs of ten nodes each, in the shape that TFX gives it.

    Every third run takes the nodes up to Transform from the run before it, as TFX's cache does.

    Args:
        path: The file; it must not exist.
        runs: How many runs.
        pipeline: The pipeline's name; the runs are `<pipeline>-00000`, `<pipeline>-00001`, …
    """
    fill(connections.sqlite(path), runs, pipeline)


def fill(connection: mlmd_pb2.ConnectionConfig, runs: int, pipeline: str = "taxi") -> None:
    """Does what `write` does, in the empty store of a connection."""
    _Writer(connections.connect(connection), pipeline).write(runs)


class _Writer:
    def __init__(self, store: mlmd.MetadataStore, pipeline: str) -> None:
        self._store = store
        self._pipeline = pipeline
        types = {name for _inputs, outputs in CHAIN.values() for _output, name in outputs}
        self._artifact_types = {n: store.put_artifact_type(mlmd_pb2.ArtifactType(name=n)) for n in sorted(types)}
        self._execution_types = {n: store.put_execution_type(mlmd_pb2.ExecutionType(name=n)) for n in CHAIN}

    def write(self, runs: int) -> None:
        [parent] = self._contexts("pipeline", [self._pipeline])
        nodes = dict(zip(CHAIN, self._contexts("node", [f"{self._pipeline}.{node}" for node in CHAIN]), strict=True))
        run_ids = self._contexts("pipeline_run", [f"{self._pipeline}-{index:05}" for index in range(runs)])
        self._store.put_parent_contexts([mlmd_pb2.ParentContext(child_id=run, parent_id=parent) for run in run_ids])
        executions = self._store.put_executions([self._execution(i, node) for i in range(runs) for node in CHAIN])
        artifacts = iter(
            self._store.put_artifacts([self._artifact(i, n, o) for i in range(runs) for n, o in self._new_outputs(i)])
        )
        associations, attributions, events = [], [], []
        latest: dict[str, int] = {}
        ids = iter(executions)
        for index, run in enumerate(run_ids):
            fresh = {output: next(artifacts) for _node, (output, _type) in self._new_outputs(index)}
            latest |= fresh
            for node, (inputs, outputs) in CHAIN.items():
                execution = next(ids)
                contexts = (parent, run, nodes[node])
                associations += [mlmd_pb2.Association(context_id=c, execution_id=execution) for c in contexts]
                attributions += [
                    mlmd_pb2.Attribution(context_id=c, artifact_id=fresh[output])
                    for output, _type in outputs
                    if output in fresh
                    for c in contexts
                ]
                events += [_event(latest[name], execution, mlmd_pb2.Event.INPUT, name) for name in inputs]
                events += [_event(latest[name], execution, mlmd_pb2.Event.OUTPUT, name) for name, _type in outputs]
        self._store.put_attributions_and_associations(attributions, associations)
        remaining = iter(events)
        while batch := list(islice(remaining, BATCH)):
            self._store.put_events(batch)

    def _cached(self, index: int, node: str) -> bool:
        order = list(CHAIN)
        return index % 3 == 2 and order.index(node) <= order.index("Transform")

    def _new_outputs(self, index: int) -> list[tuple[str, tuple[str, str]]]:
        return [
            (node, output)
            for node, (_inputs, outputs) in CHAIN.items()
            if not self._cached(index, node)
            for output in outputs
        ]

    def _contexts(self, type_name: str, names: Sequence[str]) -> list[int]:
        type_id = self._store.put_context_type(mlmd_pb2.ContextType(name=type_name))
        return list(self._store.put_contexts([mlmd_pb2.Context(type_id=type_id, name=name) for name in names]))

    def _execution(self, index: int, node: str) -> mlmd_pb2.Execution:
        state = mlmd_pb2.Execution.CACHED if self._cached(index, node) else mlmd_pb2.Execution.COMPLETE
        execution = mlmd_pb2.Execution(type_id=self._execution_types[node], last_known_state=state)
        # As long as in a real run.
        code = {f"components/{node.lower()}/module_{n}.py": f"{index * 64 + n:016x}" for n in range(40)}
        fingerprint = {"code": code, "files": {}, "packages": {"tensorflow": "2.16.2"}, "settings": {"seed": index}}
        execution.custom_properties["fingerprint"].string_value = json.dumps(fingerprint)
        return execution

    def _artifact(self, index: int, node: str, output: tuple[str, str]) -> mlmd_pb2.Artifact:
        name, type_name = output
        uri = f"/artifacts/{self._pipeline}/{node}/{name}/{index}"
        artifact = mlmd_pb2.Artifact(type_id=self._artifact_types[type_name], uri=uri, state=mlmd_pb2.Artifact.LIVE)
        artifact.custom_properties["tfx_version"].string_value = "1.16.0"
        if type_name == "PushedModel":
            artifact.custom_properties["pushed"].int_value = 1
            artifact.custom_properties["pushed_version"].string_value = str(index)
            artifact.custom_properties["pushed_destination"].string_value = f"/serving/{self._pipeline}/{index}"
        return artifact


def _event(artifact: int, execution: int, kind: int, name: str) -> mlmd_pb2.Event:
    event = mlmd_pb2.Event(artifact_id=artifact, execution_id=execution, type=kind)
    event.path.steps.add().key = name
    event.path.steps.add().index = 0
    return event


def main() -> None:
    """Makes the store and prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "metadata.sqlite")
        write(path)
        for name, median in (measure(path) | measure_dashboard(path)).items():
            print(f"{name:<44} {median:7.1f} ms")


def measure(path: Path) -> dict[str, float]:
    """The median milliseconds of each page, by name, on a store made by `write`; includes opening the store."""
    store = _opened(path)
    newest = store.artifacts(limit=1)[0].artifact.id
    [oldest] = store.artifacts(limit=1, before=2)
    pages: dict[str, Callable[[Queries], object]] = {
        "25 newest runs": lambda opened: opened.runs(),
        "25 runs in the middle": lambda opened: opened.runs(before=len(opened.all_run_ids()) // 2),
        "one run": lambda opened: opened.runs(limit=1),
        "25 newest artifacts": lambda opened: opened.artifacts(),
        "25 newest models": lambda opened: opened.artifacts("Model"),
        "what is deployed": lambda opened: opened.deployed(),
        "lineage up": lambda opened: lineage.trace(opened, newest),
        "lineage down": lambda opened: lineage.trace(opened, oldest.artifact.id, "down"),
        "all run ids": lambda opened: opened.all_run_ids(),
    }
    return {name: statistics.median(_times(path, page)) for name, page in pages.items()}


def measure_dashboard(path: Path) -> dict[str, float]:
    """The median milliseconds of each page of the dashboard, by name: a fresh process's first request, over HTTP."""
    store = _opened(path)
    [newest], [model] = store.runs(limit=1), store.artifacts("Model", limit=1)
    pages = {
        "runs": "/",
        "failed runs": "/?state=failed",
        "running runs": "/?state=running",
        "run": f"/runs/{newest.id}",
        "node": f"/runs/{newest.id}/nodes/Trainer",
        "artifacts": "/artifacts",
        "artifact": f"/artifacts/{model.artifact.id}",
        "lineage": f"/artifacts/{model.artifact.id}/lineage",
        "what the first examples became": "/artifacts/1/lineage?direction=down",
        "models": "/models",
        "comparison of 50 runs": "/compare?recipe=taxi",
    }
    environment = path.with_name("environment.yaml")
    roots = {name: str(path.parent / name) for name in ("pipeline_root", "serving_root", "log_root")}
    environment.write_text(json.dumps(roots | {"metadata_store": {"sqlite": str(path)}}), encoding="utf-8")
    measured = {
        f"dashboard: {name}": statistics.median(_requests(environment, address)[0] for _ in range(PROCESSES))
        for name, address in pages.items()
    }
    return measured | {"dashboard: runs, once more": _requests(environment, "/")[1]}


def _requests(environment: Path, address: str) -> tuple[float, float]:
    """The milliseconds of the first and the second request to a fresh process."""
    command = [sys.executable, "-m", "pipeline.cli", "inspect", "--port", "0", "--env", str(environment)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            base = process.stdout.readline().split()[1].rstrip("/")
            return _milliseconds(f"{base}{address}"), _milliseconds(f"{base}{address}")
        finally:
            process.terminate()


def _milliseconds(address: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=60) as response:  # noqa: S310 - loopback
        response.read()
    return 1000 * (time.perf_counter() - began)


def _times(path: Path, page: Callable[[Queries], object]) -> list[float]:
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        page(_opened(path))
        times.append(1000 * (time.perf_counter() - began))
    return times


def _opened(path: Path) -> Queries:
    store = Queries.open_sqlite(path)
    if store is None:
        raise SystemExit(f"{path} holds no store.")
    return store


if __name__ == "__main__":
    main()
