"""New versions under load."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.report import Figure
from benchmarks.serving import processes
from benchmarks.serving.bench import Bench

LOAD = 0.7
MOST_P99 = 3.0
SECONDS = 8.0
VERSIONS = 2
PAUSE_SECONDS = 3.0


def measure(bench: Bench) -> list[Figure]:
    """Four clients at 70 % of what the server can do: 8 seconds in which nothing happens, 8 with two swaps."""

    def once() -> dict[str, float]:
        base_path = bench.folder / f"swap-{time.monotonic_ns()}"
        shutil.copytree(bench.small.base_path, base_path)
        with processes.model_server(base_path, bench.log("swap")) as (port, _):
            rate = LOAD * bench.rest(port)["rate"]
            steady = bench.rest(port, rate=rate, seconds=SECONDS)
            with ThreadPoolExecutor(1) as pool:
                clients = pool.submit(bench.rest, port, rate=rate, seconds=SECONDS)
                for version in range(2, 2 + VERSIONS):
                    time.sleep(PAUSE_SECONDS)
                    shutil.copytree(base_path / "1", base_path / "incoming")
                    (base_path / "incoming").rename(base_path / str(version))
                swapped = clients.result()
        return {
            "failed": swapped["failed"] + steady["failed"],
            "ratio": swapped["p99"] / steady["p99"],
            "p99": swapped["p99"],
            "steady": steady["p99"],
            "rate": swapped["rate"],
        }

    found = bench.repeat("swap", once)
    return [
        Figure("swap: failed requests", found["failed"], at_most=0, digits=0),
        Figure("swap: p99 / p99 in steady state", found["ratio"], at_most=MOST_P99),
        Figure("swap: p99", found["p99"], unit=" ms"),
        Figure("swap: p99 in steady state", found["steady"], unit=" ms"),
        Figure("swap: requests", found["rate"], unit="/s", digits=0),
    ]
