"""Compares data work on Flink with the same work in memory: `python -m benchmarks.flink [equality] [memory]`.

The data are the taxi rows that come with TFX, 20 and 200 times. The cluster is the one that `make flink` starts, with
two TaskManagers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from benchmarks import equality, millrace
from benchmarks.command import Bench, Figure, command
from flink.cluster import Cluster
from pipeline.plan.nodes import BEAM_NODES
from pipeline.plan.project import ENGINE

FEW, MANY = 20, 200
TOLERANCE = 1e-6
FLAT = 1.3
SECONDS = 0.2
WORKER = "import SdkHarness"
PROCESS_WORKERS = (
    "--experiments=use_loopback_process_worker=True",
    # Both TaskManagers give their worker the same name: when one ends its own, Beam may end the other's.
    "--environment_cache_millis=3600000",
)


class FlinkBench(Bench):
    """One run of the benchmarks; a cluster is started for each."""

    def data(self, times: int) -> str:
        """The taxi rows repeated `times` times, as a `--set`."""
        path = self.folder / f"taxi-{times}.csv"
        if not path.exists():
            millrace.write_taxi_rows(path, times)
        return f"data.path={path}"

    def environment(self, name: str, *options: str) -> Path:
        """An environment whose data work runs on Flink."""
        path = millrace.write_environment(self.folder / name)
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        delivered = yaml.safe_load((ENGINE / "environments" / "flink.yaml").read_text(encoding="utf-8"))
        settings["beam"] = delivered["beam"] | {"options": list(options)}
        on_flink = path.with_name("flink.yaml")
        on_flink.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return on_flink

    def run(self, name: str, environment: Path, data: str, *options: str) -> None:
        """Runs `millrace run taxi`, without bars, since they are not what is measured."""
        self.say(f"Running {name}")
        millrace.run(name, environment, self.folder, data, bars=False, options=options)


def measure_equality(bench: FlinkBench) -> list[Figure]:
    """Compares everything that Flink computes from the rows with what the in-memory runner computes."""
    on_flink, data = bench.environment("equality"), bench.data(FEW)
    in_memory = on_flink.with_name("environment.yaml")
    folder = on_flink.parent
    with cluster():
        bench.run("on-flink", on_flink, data)
    flink, seconds = _outputs(folder), _seconds(folder)
    # First evaluates the very model that was evaluated on Flink, then repeats the data work from the start.
    bench.run("evaluator-in-memory", in_memory, data, "--force", "--from", "Evaluator", "--to", "Evaluator")
    evaluation, of_memory = _output(folder, "Evaluator", "evaluation"), _seconds(folder)
    bench.run("in-memory", in_memory, data, "--force", "--to", "Transform")
    memory, of_memory = _outputs(folder), of_memory | _seconds(folder)
    differences = {
        "statistics": equality.statistics_difference(flink["statistics"], memory["statistics"]),
        "transformed values": equality.transformed_difference(
            flink["transformed_examples"], memory["transformed_examples"]
        ),
        "metrics": equality.metrics_difference(flink["evaluation"], evaluation),
    }
    vocabularies = equality.different_vocabularies(flink["transform_graph"], memory["transform_graph"])
    return [
        Figure(
            "examples that one has and the other not",
            equality.count_different_examples(flink["examples"], memory["examples"]),
            0,
            0,
        ),
        Figure("vocabularies that differ", len(vocabularies), at_most=0, digits=0),
        *(Figure(f"{name} apart, at most", value, at_most=TOLERANCE, digits=12) for name, value in differences.items()),
        *(
            Figure(f"{node}: Flink / memory", seconds[node] / of_memory[node], unit=f" ({seconds[node]:.1f} s)")
            for node in BEAM_NODES
        ),
    ]


def measure_memory(bench: FlinkBench) -> list[Figure]:
    """The peak memory of Beam's workers, each in a process of its own, for ten times the rows."""
    # Beam starts a worker by its program's name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    peaks = {}
    for times in (FEW, MANY):
        environment = bench.environment(f"memory-{times}", *PROCESS_WORKERS)
        with cluster(), _watched() as peak:
            bench.run(f"on-flink-{times}", environment, bench.data(times), "--to", "Transform")
        peaks[times] = max(peak.values(), default=0) / 2**20
    return [
        *(Figure(f"peak memory of a worker, x {times}", peaks[times], unit=" MiB", digits=0) for times in peaks),
        Figure("ten times the rows", peaks[MANY] / peaks[FEW], at_most=FLAT),
    ]


@contextmanager
def cluster() -> Iterator[None]:
    """Starts the cluster of `make flink`; stops it afterwards unless it was already running."""
    flink_cluster = Cluster()
    started = flink_cluster.start()
    try:
        yield
    finally:
        if started:
            flink_cluster.stop()


@contextmanager
def _watched() -> Iterator[dict[int, int]]:
    """Process id -> peak resident bytes, for each of Beam's worker processes in the meantime."""
    peaks: dict[int, int] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(SECONDS):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if WORKER in (process / "cmdline").read_text(errors="replace"):
                        peaks[int(process.name)] = _peak(process)
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _peak(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _output(folder: Path, node: str, key: str) -> str:
    return str(millrace.output(folder, millrace.RECIPE, node, key).uri)


def _outputs(folder: Path) -> dict[str, str]:
    nodes = millrace.latest_nodes(folder)
    nodes_by_key = {"examples": "ExampleGen", "statistics": "StatisticsGen", "transform_graph": "Transform"}
    nodes_by_key |= {"transformed_examples": "Transform", "evaluation": "Evaluator"}
    return {key: _output(folder, node, key) for key, node in nodes_by_key.items() if node in nodes}


def _seconds(folder: Path) -> dict[str, float]:
    nodes = millrace.latest_nodes(folder)
    return {
        node: (nodes[node].updated - nodes[node].started) / 1000
        for node in BEAM_NODES
        if node in nodes and nodes[node].state != "CACHED"
    }


main = command(
    f"Flink with two TaskManagers, taxi x {FEW}",
    "Compare data work on Flink with the same work in memory.",
    FlinkBench,
    {"equality": measure_equality, "memory": measure_memory},
)

if __name__ == "__main__":
    main()
