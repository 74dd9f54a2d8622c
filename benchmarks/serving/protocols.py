"""REST and gRPC against the model called from Python, and REST against FastAPI."""

from __future__ import annotations

from benchmarks.report import Figure
from benchmarks.serving import processes
from benchmarks.serving.bench import CLIENTS, ROW, SECONDS, Bench

REST_LEAST, GRPC_LEAST = 1.0, 0.6
MOST_P99 = 5.0
CALL_LEAST, PREDICT_LEAST = 3.0, 50.0


def rest(bench: Bench) -> list[Figure]:
    """A small model, four clients: requests a second of REST against calls a second of `signatures[...]`."""

    def measure() -> dict[str, float]:
        alone = bench.signatures(bench.small)
        found = bench.rest(port)
        return {"ratio": found["rate"] / alone, "alone": alone, **found}

    with processes.model_server(bench.small.base_path, bench.log("rest")) as (port, _):
        return _figures("rest", bench.repeat("rest", measure), REST_LEAST)


def grpc(bench: Bench) -> list[Figure]:
    """The same over gRPC."""
    request = bench.folder / "request.pb"
    given = {"path": str(request), "model": "model", "name": bench.small.input_name, "row": ROW}
    bench.call("models:write_request", **given)

    def measure() -> dict[str, float]:
        alone = bench.signatures(bench.small)
        found = bench.call("load:grpc_predict", port=port, request_path=str(request), clients=CLIENTS, seconds=SECONDS)
        return {"ratio": found["rate"] / alone, "alone": alone, **found}

    with processes.model_server(bench.small.base_path, bench.log("grpc")) as (_, port):
        return _figures("grpc", bench.repeat("grpc", measure), GRPC_LEAST)


def fastapi(bench: Bench) -> list[Figure]:
    """A small model, four clients: requests a second of ours against those of FastAPI around the Keras model."""

    def measure() -> dict[str, float]:
        with processes.model_server(bench.small.base_path, bench.log("ours")) as (port, _):
            ours = bench.rest(port)["rate"]
        rates = {"ours": ours}
        for call in ("call", "predict"):
            with processes.fastapi_server(bench.small.keras, call, bench.log(f"fastapi-{call}")) as port:
                found = bench.rest(port, path="/predict")
            rates[call], rates[f"ratio_{call}"] = found["rate"], ours / found["rate"]
        return rates

    found = bench.repeat("fastapi", measure)
    return [
        Figure("fastapi: ours / FastAPI calling model(x)", found["ratio_call"], at_least=CALL_LEAST, digits=1),
        Figure("fastapi: ours / FastAPI calling model.predict", found["ratio_predict"], at_least=PREDICT_LEAST),
        *(Figure(f"fastapi: {name}", found[name], unit="/s", digits=0) for name in ("ours", "call", "predict")),
    ]


def _figures(name: str, found: dict[str, float], least: float) -> list[Figure]:
    return [
        Figure(f"{name}: requests/s / signatures[...] calls/s", found["ratio"], at_least=least),
        Figure(f"{name}: p99", found["p99"], at_most=MOST_P99, unit=" ms"),
        Figure(f"{name}: p50", found["p50"], unit=" ms"),
        Figure(f"{name}: failed", found["failed"], at_most=0, digits=0),
        Figure(f"{name}: requests", found["rate"], unit="/s", digits=0),
        Figure(f"{name}: signatures[...]", found["alone"], unit="/s", digits=0),
    ]
