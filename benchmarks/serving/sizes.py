"""Larger models: what the server adds to a slow one, and what batching gains."""

from __future__ import annotations

from benchmarks.report import Figure
from benchmarks.serving import processes
from benchmarks.serving.bench import CLIENTS, ROW, SECONDS, Bench

HEAVY_LEAST = 0.85
BATCHING_LEAST = 1.5
BATCHING_CLIENTS = 16
PARAMETERS = """max_batch_size { value: 64 }
batch_timeout_micros { value: 0 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 2 }
"""


def heavy(bench: Bench) -> list[Figure]:
    """A model of more than a millisecond, four clients, against a process that holds it and calls it in one thread."""
    model = bench.heavy

    def measure() -> dict[str, float]:
        path, name = str(model.base_path / "1"), model.input_name
        one, several = (
            bench.call("models:session_rate", path=path, name=name, row=ROW, seconds=SECONDS, threads=threads)
            for threads in (1, CLIENTS)
        )
        served = bench.rest(port)["rate"]
        return {"ratio": served / one, "one": one, "several": several, "call": 1e3 / one, "served": served}

    with processes.model_server(model.base_path, bench.log("heavy")) as (port, _):
        found = bench.repeat("heavy", measure)
    return [
        Figure("heavy: requests/s / calls/s in one process", found["ratio"], at_least=HEAVY_LEAST),
        Figure("heavy: a call", found["call"], at_least=1.0, unit=" ms"),
        Figure("heavy: requests", found["served"], unit="/s", digits=0),
        Figure("heavy: calls in one process, one thread", found["one"], unit="/s", digits=0),
        Figure("heavy: calls in one process, four threads", found["several"], unit="/s", digits=0),
    ]


def batching(bench: Bench) -> list[Figure]:
    """2.4 million parameters, 16 clients: requests a second with batching against without."""
    parameters = bench.folder / "batching.config"
    parameters.write_text(PARAMETERS, encoding="utf-8")
    on = ["--enable_batching", f"--batching_parameters_file={parameters}"]

    def rate(name: str, flags: list[str]) -> float:
        with processes.model_server(bench.wide.base_path, bench.log(name), flags) as (port, _):
            return float(bench.rest(port, BATCHING_CLIENTS)["rate"])

    def measure() -> dict[str, float]:
        without, within = rate("unbatched", []), rate("batched", on)
        return {"ratio": within / without, "off": without, "on": within}

    found = bench.repeat("batching", measure)
    return [
        Figure("batching: on / off, 16 clients", found["ratio"], at_least=BATCHING_LEAST),
        *(Figure(f"batching: requests, {name}", found[name], unit="/s", digits=0) for name in ("on", "off")),
    ]
