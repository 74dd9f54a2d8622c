"""Times the taxi pipeline on its rows repeated 1 to 2,000 times: `python -m benchmarks.scale [NAME …]`.

The yardsticks are the plain script on the same file, our own nodes on Beam in memory, and stock TFX's taxi example.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import children, millrace
from benchmarks.command import Bench, Figure, command
from benchmarks.watching import Watched, watched
from metadata.store import NodeRun

FEW, SOME, MANY, MOST = 1, 20, 200, 2000
ROWS = 15_002

OVER_PLAIN = {FEW: 1.0, SOME: 1.1, MANY: 1.2}
OVER_BEAM = {"StatisticsGen": 0.15, "Transform": 0.4, "Evaluator": 0.08}
STOCK_OVER_OURS = 4.0
CORES_IN_USE = 1.7
GROWTH_OF_SECONDS, GROWTH_OF_MEMORY = 1.1, 1.3

DATA_NODES = ("ExampleGen", "StatisticsGen", "Transform", "Evaluator")
ON_BEAM = {"beam": {"runner": "direct"}}


@dataclass(frozen=True)
class Run:
    """A fresh run of ours.

    Attributes:
        seconds: Wall time of the whole process.
        nodes: Its node runs.
        seen: What its processes took.
    """

    seconds: float
    nodes: dict[str, NodeRun]
    seen: Watched

    @property
    def cores_in_use(self) -> float:
        """On average while a node works on the data."""
        spans = [(run.started / 1000, run.updated / 1000) for run in self.nodes.values() if run.node in DATA_NODES]
        return self.seen.cores_in_use(spans)

    def figures(self, name: str) -> list[Figure]:
        """Its seconds, whole and by node, and its memory."""
        return [
            Figure(f"{name}: seconds", self.seconds, digits=1),
            Figure(f"{name}: peak memory", self.seen.peak_bytes / 2**30, unit=" GiB"),
            *(
                Figure(f"{name}: {node}", self.nodes[node].seconds, unit=" s", digits=1)
                for node in (*DATA_NODES, "Trainer")
            ),
        ]


class ScaleBench(Bench):
    """One run of the benchmarks."""

    def data(self, times: int) -> Path:
        """The taxi rows repeated `times` times."""
        path = self.folder / f"taxi-{times}" / "data.csv"
        if not path.exists():
            path.parent.mkdir()
            millrace.write_taxi_rows(path, times)
        return path

    def run(self, name: str, times: int, **sections: Any) -> Run:
        """A run of ours in fresh folders, without bars, since they are not what is measured."""
        self.say(f"Running {name}: {ROWS * times:,} rows")
        data = f"data.path={self.data(times)}"
        environment = millrace.write_environment(self.folder / name, **sections)
        with watched() as seen:
            timed = millrace.run(name, environment, self.folder / "logs", data, bars=False)
        return Run(timed.seconds, millrace.latest_nodes(self.folder / name), seen)

    def yardstick(self, name: str, module: str, data: Path) -> float:
        """The seconds of a module of benchmarks that is given a fresh folder and the data."""
        self.say(f"Running {name}")
        folder = self.folder / name
        folder.mkdir()
        return children.run_child(name, ["-m", module, str(folder), str(data)], self.folder / "logs").seconds


def measure_plain(bench: ScaleBench) -> list[Figure]:
    """Whole runs against the plain script on the same file, and how both time and memory grow with the rows."""
    figures, runs = [], {}
    for times, bar in OVER_PLAIN.items():
        name = f"{ROWS * times:,} rows"
        plain = bench.yardstick(f"plain-{times}", "benchmarks.plain_taxi", bench.data(times))
        runs[times] = run = bench.run(f"ours-{times}", times)
        figures += run.figures(name)
        figures.append(Figure(f"{name}: ours / plain script ({plain:.1f} s)", run.seconds / plain, at_most=bar))
    return [
        *figures,
        Figure("cores in use by data nodes at the most rows", runs[MANY].cores_in_use, at_least=CORES_IN_USE),
        *_growth(runs[SOME], runs[MANY], MANY // SOME),
    ]


def measure_beam(bench: ScaleBench) -> list[Figure]:
    """The data nodes at three million rows against themselves on Beam in memory."""
    ours, beam = bench.run(f"columns-{MANY}", MANY), bench.run(f"beam-{MANY}", MANY, **ON_BEAM)
    return [
        Figure(
            f"{node}: by columns / on Beam ({beam.nodes[node].seconds:.0f} s)",
            ours.nodes[node].seconds / beam.nodes[node].seconds,
            at_most=bar,
        )
        for node, bar in OVER_BEAM.items()
    ]


def measure_stock(bench: ScaleBench) -> list[Figure]:
    """Stock TFX's taxi example at 300,000 rows."""
    stock = bench.yardstick("stock", "benchmarks.stock_taxi", bench.data(SOME).parent)
    ours = bench.run(f"against-stock-{SOME}", SOME)
    return [Figure(f"stock ({stock:.0f} s) / ours", stock / ours.seconds, at_least=STOCK_OVER_OURS)]


def measure_most(bench: ScaleBench) -> list[Figure]:
    """Thirty million rows, and their growth over three million."""
    many, most = bench.run(f"before-{MANY}", MANY), bench.run(f"most-{MOST}", MOST)
    return [*most.figures(f"{ROWS * MOST:,} rows"), *_growth(many, most, MOST // MANY)]


def _growth(few: Run, many: Run, times: int) -> list[Figure]:
    return [
        Figure(f"{times} times the rows: seconds a row", many.seconds / few.seconds / times, at_most=GROWTH_OF_SECONDS),
        Figure(
            f"{times} times the rows: peak memory",
            many.seen.peak_bytes / few.seen.peak_bytes,
            at_most=GROWTH_OF_MEMORY,
        ),
    ]


main = command(
    "Taxi, by size",
    "Time the taxi pipeline on its rows repeated 1 to 2,000 times. Thirty million rows (most) take 4 GB for the file.",
    ScaleBench,
    {"plain": measure_plain, "beam": measure_beam, "stock": measure_stock, "most": measure_most},
)

if __name__ == "__main__":
    main()
