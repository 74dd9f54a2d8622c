"""The input pipeline without a model against the model that it feeds."""

from __future__ import annotations

from statistics import median

from benchmarks.report import Figure
from benchmarks.training.bench import BATCH, NOISE_ROWS, RESNET, Bench, resnet_settings, seconds

BATCHES = 400
CACHES = {"memory": "kept in memory", "none": "streamed from the files"}


def measure(bench: Bench) -> list[Figure]:
    """Augmented batches a second, with each kind of cache, by what a ResNet-20 takes in its fit."""
    return [_compare(bench, cache, name) for cache, name in CACHES.items()]


def _compare(bench: Bench, cache: str, name: str) -> Figure:
    training = {"module": RESNET, "data": bench.noise, "settings": resnet_settings(input={"cache": cache})}
    rounds = bench.alternately(
        {
            "fit": lambda: seconds(bench.call("our_fit", f"input: fit, {name}", training)["epochs"]),
            "input": lambda: bench.call("input_alone", f"input: alone, {name}", {**training, "batches": BATCHES}),
        }
    )
    batch = median(rounds["fit"]) / (NOISE_ROWS / BATCH)
    return Figure(f"input: batches/s alone / in fit, {name}", batch / median(rounds["input"]), at_least=1.0)
