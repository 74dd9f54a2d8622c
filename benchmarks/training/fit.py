"""How fast the Trainer trains, with one worker and with two, and how much memory it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.children import ChildError
from benchmarks.command import Figure
from benchmarks.training.bench import (
    BATCH,
    FEW_ROWS,
    MANY_ROWS,
    NOISE_ROWS,
    RESNET,
    WIDE_AND_DEEP,
    TrainingBench,
    ratio,
    resnet_settings,
    seconds,
    trainer_settings,
)

FIT_LEAST = 0.95
TAXI_EPOCHS = 6


def measure_fit(bench: TrainingBench) -> list[Figure]:
    """Times epochs after the first, without validation, but with checkpoints and all other callbacks.

    There is no augmentation, which the bare fit does not have either.
    """
    settings = resnet_settings(epochs=4, params={"max_shift": 0})
    resnet = {"module": RESNET, "data": bench.images(MANY_ROWS), "settings": settings}
    taxi_settings = trainer_settings("taxi", train_steps=None, epochs=TAXI_EPOCHS)
    taxi = {"module": WIDE_AND_DEEP, "data": bench.taxi(), "settings": taxi_settings}
    return [
        Figure("fit: ours / bare, images/s, ResNet-20", _compare_fits(bench, resnet), at_least=FIT_LEAST),
        Figure("fit: ours / bare, rows/s, taxi model", _compare_fits(bench, taxi)),
    ]


def _compare_fits(bench: TrainingBench, training: Mapping[str, Any]) -> float:
    rounds = bench.alternately(
        {
            "ours": lambda: seconds(bench.side("our_fit", "fit: ours", training)["epochs"]),
            "bare": lambda: seconds(bench.side("bare_fit", "fit: bare", training)),
        }
    )
    return ratio(rounds["bare"], rounds["ours"])


BATCHES = 400
CACHES = {"memory": "kept in memory", "none": "streamed from the files"}


def measure_input(bench: TrainingBench) -> list[Figure]:
    """Augmented batches per second with each kind of cache, divided by the batches per second of a ResNet-20's fit."""
    return [_compare_input(bench, cache, name) for cache, name in CACHES.items()]


def _compare_input(bench: TrainingBench, cache: str, name: str) -> Figure:
    training = {"module": RESNET, "data": bench.images(NOISE_ROWS), "settings": resnet_settings(input={"cache": cache})}
    rounds = bench.alternately(
        {
            "fit": lambda: seconds(bench.side("our_fit", f"input: fit, {name}", training)["epochs"]),
            "input": lambda: bench.side("input_alone", f"input: alone, {name}", {**training, "batches": BATCHES}),
        }
    )
    batch = median(rounds["fit"]) / (NOISE_ROWS / BATCH)
    return Figure(f"input: batches/s alone / in fit, {name}", batch / median(rounds["input"]), at_least=1.0)


WORKERS_LEAST = 1.6
WORKERS_WIDTH = 32
WORKERS_EPOCHS = 3


def measure_workers(bench: TrainingBench) -> list[Figure]:
    """Images per second of the same ResNet-20, with the same global batch and with the same batch per worker.

    It runs in float32 and has twice the paper's width, so that it is bound by arithmetic and what happens once an epoch
    does not show.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise ChildError("workers: this process may use 1 core, expected 2.")
    return [
        _compare_workers(
            bench, cores, "the same global batch", one_batch=2 * BATCH, two_batch=2 * BATCH, at_least=WORKERS_LEAST
        ),
        _compare_workers(bench, cores, "the same batch a worker", one_batch=BATCH, two_batch=2 * BATCH, at_least=None),
    ]


def _compare_workers(
    bench: TrainingBench, cores: list[int], name: str, one_batch: int, two_batch: int, at_least: float | None
) -> Figure:
    common = {"precision": "float32", "params": {"width": WORKERS_WIDTH}, "epochs": WORKERS_EPOCHS}
    alone = resnet_settings(**common, batch_size=one_batch, strategy="one_device")
    both = resnet_settings(**common, batch_size=two_batch, strategy="multi_worker", workers=2, communication="ring")
    rounds = bench.alternately(
        {
            "one": lambda: _epoch(bench, f"workers: one, {name}", alone, cores[:1]),
            "two": lambda: _epoch(bench, f"workers: two, {name}", both, cores),
        }
    )
    return Figure(f"workers: two / one, images/s, {name}", ratio(rounds["one"], rounds["two"]), at_least=at_least)


def _epoch(bench: TrainingBench, note: str, settings: dict[str, Any], cores: list[int]) -> float:
    arguments = {"module": RESNET, "data": bench.images(NOISE_ROWS), "settings": settings}
    return seconds(bench.side("whole_job", note, arguments, cores))


RECOMPUTE_DEPTH, RECOMPUTE_WIDTH, RECOMPUTE_BATCH = 56, 32, 256
RECOMPUTE_EPOCHS = 3
MOST_MEMORY = 0.6
MOST_DIFFERENCE = 1e-5


def measure_recompute(bench: TrainingBench) -> list[Figure]:
    """The peak memory of the whole process, including TensorFlow itself, and how much the trained weights differ."""
    rounds = bench.alternately(
        {"kept": lambda: _train_recomputed(bench, []), "recomputed": lambda: _train_recomputed(bench, ["block_*"])}
    )
    baseline, recomputed = rounds["kept"], rounds["recomputed"]
    peaks = {name: [float(result["peak_bytes"]) for result in results] for name, results in rounds.items()}
    times = {name: [seconds(result["epochs"]) for result in results] for name, results in rounds.items()}
    name = f"recompute, ResNet-{RECOMPUTE_DEPTH}, width {RECOMPUTE_WIDTH}, batch {RECOMPUTE_BATCH}"
    return [
        Figure(f"{name}: peak memory / without", ratio(peaks["recomputed"], peaks["kept"]), at_most=MOST_MEMORY),
        Figure(
            f"{name}: greatest difference of a weight",
            max(_difference(left, right) for left, right in zip(baseline, recomputed, strict=True)),
            at_most=MOST_DIFFERENCE,
            digits=8,
        ),
        Figure(f"{name}: peak memory before the fit", baseline[0]["peak_bytes_before"] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: peak memory without", peaks["kept"][0] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: peak memory with", peaks["recomputed"][0] / 2**20, unit=" MiB", digits=0),
        Figure(f"{name}: time / without", ratio(times["recomputed"], times["kept"])),
    ]


def _train_recomputed(bench: TrainingBench, recompute: list[str]) -> dict[str, Any]:
    settings = resnet_settings(
        epochs=RECOMPUTE_EPOCHS,
        batch_size=RECOMPUTE_BATCH,
        precision="float32",
        params={"depth": RECOMPUTE_DEPTH, "width": RECOMPUTE_WIDTH},
        optimization={"recompute": recompute},
    )
    arguments = {"module": RESNET, "data": bench.images(FEW_ROWS), "settings": settings}
    note = f"recompute: {'with' if recompute else 'without'}"
    return dict(bench.side("our_fit", note, arguments))


def _difference(left: dict[str, Any], right: dict[str, Any]) -> float:
    return float(np.abs(np.load(left["weights"]) - np.load(right["weights"])).max())
