"""Compares the model server with its yardsticks: protocols, model sizes, and new versions under load."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.command import Figure
from benchmarks.serving.bench import CLIENTS, ROW, SECONDS, ServingBench, fastapi_server, model_server

REST_LEAST, GRPC_LEAST = 1.0, 0.6
MOST_P99 = 5.0
CALL_LEAST, PREDICT_LEAST = 3.0, 50.0

HEAVY_LEAST = 0.85
BATCHING_LEAST = 1.5
BATCHING_CLIENTS = 16
PARAMETERS = """max_batch_size { value: 64 }
batch_timeout_micros { value: 0 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 2 }
"""

SWAP_LOAD = 0.7
SWAP_MOST_P99 = 3.0
SWAP_SECONDS = 8.0
SWAP_VERSIONS = 2
SWAP_PAUSE_SECONDS = 3.0


def rest(bench: ServingBench) -> list[Figure]:
    """A small model, four clients: requests per second over REST against calls per second of `signatures[...]`."""
    with model_server(bench.small.base_path, bench.log("rest")) as (port, _):
        return _against_signatures(bench, "rest", lambda: bench.rest(port), REST_LEAST)


def grpc(bench: ServingBench) -> list[Figure]:
    """The same over gRPC."""
    request = str(bench.folder / "request.pb")
    bench.ask("models:write_request", path=request, model="model", name=bench.small.input_name, row=ROW)
    with model_server(bench.small.base_path, bench.log("grpc")) as (_, port):
        arguments = {"port": port, "request_path": request, "clients": CLIENTS, "seconds": SECONDS}
        return _against_signatures(bench, "grpc", lambda: bench.ask("load:grpc_predict", **arguments), GRPC_LEAST)


def fastapi(bench: ServingBench) -> list[Figure]:
    """A small model, four clients: our requests per second against those of FastAPI around the Keras model."""

    def measure() -> dict[str, float]:
        with model_server(bench.small.base_path, bench.log("ours")) as (port, _):
            ours = bench.rest(port)["rate"]
        rates = {"ours": ours}
        for call in ("call", "predict"):
            with fastapi_server(bench.small.keras, call, bench.log(f"fastapi-{call}")) as port:
                rate = bench.rest(port, path="/predict")["rate"]
            rates[call], rates[f"ratio_{call}"] = rate, ours / rate
        return rates

    measured = bench.repeat("fastapi", measure)
    return [
        Figure("fastapi: ours / FastAPI calling model(x)", measured["ratio_call"], at_least=CALL_LEAST, digits=1),
        Figure("fastapi: ours / FastAPI calling model.predict", measured["ratio_predict"], at_least=PREDICT_LEAST),
        *(Figure(f"fastapi: {name}", measured[name], unit="/s", digits=0) for name in ("ours", "call", "predict")),
    ]


def _against_signatures(
    bench: ServingBench, name: str, ask: Callable[[], dict[str, float]], least: float
) -> list[Figure]:
    def measure() -> dict[str, float]:
        alone = bench.signatures(bench.small)
        served = ask()
        return {"ratio": served["rate"] / alone, "alone": alone, **served}

    measured = bench.repeat(name, measure)
    return [
        Figure(f"{name}: requests/s / signatures[...] calls/s", measured["ratio"], at_least=least),
        Figure(f"{name}: p99", measured["p99"], at_most=MOST_P99, unit=" ms"),
        Figure(f"{name}: p50", measured["p50"], unit=" ms"),
        Figure(f"{name}: failed", measured["failed"], at_most=0, digits=0),
        Figure(f"{name}: requests", measured["rate"], unit="/s", digits=0),
        Figure(f"{name}: signatures[...]", measured["alone"], unit="/s", digits=0),
    ]


def heavy(bench: ServingBench) -> list[Figure]:
    """A model that takes more than a millisecond, four clients, against a process that calls it in one thread."""
    model = bench.heavy

    def measure() -> dict[str, float]:
        path, name = str(model.base_path / "1"), model.input_name
        one_thread, several = (
            bench.ask("models:session_rate", path=path, name=name, row=ROW, seconds=SECONDS, threads=threads)
            for threads in (1, CLIENTS)
        )
        served = bench.rest(port)["rate"]
        return {
            "ratio": served / one_thread,
            "one": one_thread,
            "several": several,
            "call": 1e3 / one_thread,
            "served": served,
        }

    with model_server(model.base_path, bench.log("heavy")) as (port, _):
        measured = bench.repeat("heavy", measure)
    return [
        Figure("heavy: requests/s / calls/s in one process", measured["ratio"], at_least=HEAVY_LEAST),
        Figure("heavy: a call", measured["call"], at_least=1.0, unit=" ms"),
        Figure("heavy: requests", measured["served"], unit="/s", digits=0),
        Figure("heavy: calls in one process, one thread", measured["one"], unit="/s", digits=0),
        Figure("heavy: calls in one process, four threads", measured["several"], unit="/s", digits=0),
    ]


def batching(bench: ServingBench) -> list[Figure]:
    """2.4 million parameters, 16 clients: requests per second with batching against those without."""
    parameters = bench.folder / "batching.config"
    parameters.write_text(PARAMETERS, encoding="utf-8")
    on = ["--enable_batching", f"--batching_parameters_file={parameters}"]

    def rate(name: str, flags: list[str]) -> float:
        with model_server(bench.wide.base_path, bench.log(name), flags) as (port, _):
            return float(bench.rest(port, BATCHING_CLIENTS)["rate"])

    def measure() -> dict[str, float]:
        without, within = rate("unbatched", []), rate("batched", on)
        return {"ratio": within / without, "off": without, "on": within}

    measured = bench.repeat("batching", measure)
    return [
        Figure("batching: on / off, 16 clients", measured["ratio"], at_least=BATCHING_LEAST),
        *(Figure(f"batching: requests, {name}", measured[name], unit="/s", digits=0) for name in ("on", "off")),
    ]


def swap(bench: ServingBench) -> list[Figure]:
    """Four clients at 70 % of the server's capacity: 8 seconds in which nothing happens, 8 seconds with two swaps."""

    def once() -> dict[str, float]:
        base_path = bench.folder / f"swap-{time.monotonic_ns()}"
        shutil.copytree(bench.small.base_path, base_path)
        with model_server(base_path, bench.log("swap")) as (port, _):
            rate = SWAP_LOAD * bench.rest(port)["rate"]
            steady = bench.rest(port, rate=rate, seconds=SWAP_SECONDS)
            with ThreadPoolExecutor(1) as pool:
                clients = pool.submit(bench.rest, port, rate=rate, seconds=SWAP_SECONDS)
                for version in range(2, 2 + SWAP_VERSIONS):
                    time.sleep(SWAP_PAUSE_SECONDS)
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

    measured = bench.repeat("swap", once)
    return [
        Figure("swap: failed requests", measured["failed"], at_most=0, digits=0),
        Figure("swap: p99 / p99 in steady state", measured["ratio"], at_most=SWAP_MOST_P99),
        Figure("swap: p99", measured["p99"], unit=" ms"),
        Figure("swap: p99 in steady state", measured["steady"], unit=" ms"),
        Figure("swap: requests", measured["rate"], unit="/s", digits=0),
    ]
