"""Two workers of one core each against one worker of one core."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.children import ChildError
from benchmarks.report import Figure
from benchmarks.training.bench import BATCH, RESNET, Bench, ratio, resnet_settings, seconds

LEAST = 1.6
WIDTH = 32
EPOCHS = 3


def measure(bench: Bench) -> list[Figure]:
    """Images a second of the same ResNet-20, with the same global batch and with the same batch a worker.

    In float32 and of twice the paper's width: bound by arithmetic, of which a wide epoch has enough to hide what is
    done once an epoch.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise ChildError("workers: this process may use 1 core, expected 2.")
    return [
        _compare(bench, cores, "the same global batch", one=2 * BATCH, two=2 * BATCH, at_least=LEAST),
        _compare(bench, cores, "the same batch a worker", one=BATCH, two=2 * BATCH, at_least=None),
    ]


def _compare(bench: Bench, cores: list[int], name: str, one: int, two: int, at_least: float | None) -> Figure:
    common = {"precision": "float32", "params": {"width": WIDTH}, "epochs": EPOCHS}
    alone = resnet_settings(**common, batch_size=one, strategy="one_device")
    both = resnet_settings(**common, batch_size=two, strategy="multi_worker", workers=2, communication="ring")
    rounds = bench.alternately(
        {
            "one": lambda: _epoch(bench, f"workers: one, {name}", alone, cores[:1]),
            "two": lambda: _epoch(bench, f"workers: two, {name}", both, cores),
        }
    )
    return Figure(f"workers: two / one, images/s, {name}", ratio(rounds["one"], rounds["two"]), at_least=at_least)


def _epoch(bench: Bench, note: str, settings: dict[str, Any], cores: list[int]) -> float:
    return seconds(bench.call("whole_job", note, {"module": RESNET, "data": bench.noise, "settings": settings}, cores))
