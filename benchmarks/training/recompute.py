"""Gradient checkpointing: a deep network's peak memory with and without."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import Figure
from benchmarks.training.bench import RESNET, Bench, ratio, resnet_settings, seconds

DEPTH, WIDTH, BATCH = 56, 32, 256
EPOCHS = 3
MOST_MEMORY = 0.6
MOST_DIFFERENCE = 1e-5


def measure(bench: Bench) -> list[Figure]:
    """The peak of the whole process, TensorFlow itself included, and how far the trained weights are apart."""
    rounds = bench.alternately({"kept": lambda: _train(bench, []), "recomputed": lambda: _train(bench, ["block_*"])})
    kept, recomputed = rounds["kept"], rounds["recomputed"]
    peaks = {name: [float(result["peak_bytes"]) for result in results] for name, results in rounds.items()}
    times = {name: [seconds(result["epochs"]) for result in results] for name, results in rounds.items()}
    name = f"recompute, ResNet-{DEPTH}, width {WIDTH}, batch {BATCH}"
    return [
        Figure(f"{name}: peak memory / without", ratio(peaks["recomputed"], peaks["kept"]), at_most=MOST_MEMORY),
        Figure(
            f"{name}: greatest difference of a weight",
            max(_difference(one, other) for one, other in zip(kept, recomputed, strict=True)),
            at_most=MOST_DIFFERENCE,
            digits=8,
        ),
        Figure(f"{name}: peak memory before the fit", kept[0]["peak_bytes_before"] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: peak memory without", peaks["kept"][0] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: peak memory with", peaks["recomputed"][0] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: time / without", ratio(times["recomputed"], times["kept"])),
    ]


def _train(bench: Bench, recompute: list[str]) -> dict[str, Any]:
    settings = resnet_settings(
        epochs=EPOCHS,
        batch_size=BATCH,
        precision="float32",
        params={"depth": DEPTH, "width": WIDTH},
        optimization={"recompute": recompute},
    )
    note = f"recompute: {'with' if recompute else 'without'}"
    arguments = {"module": RESNET, "data": bench.few, "settings": settings}
    return bench.call("our_fit", note, arguments)  # type: ignore[no-any-return]


def _difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    return float(np.abs(np.load(one["weights"]) - np.load(other["weights"])).max())
