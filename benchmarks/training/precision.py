"""mixed_bfloat16 against float32: speed and accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.report import Figure
from benchmarks.training.bench import RESNET, Bench, ratio, resnet_settings, seconds, trainer_settings

KINDS = ("float32", "mixed_bfloat16")
NARROW, WIDE = 16, 64
FASTER = 1.8
MOST_POINTS = 0.3
SEEDS = 3
FOLDS = 3


def measure(bench: Bench) -> list[Figure]:
    """Images a second of a ResNet-20, and accuracy of the recipe's network on the digits."""
    return [_speed(bench, WIDE, FASTER), _speed(bench, NARROW, None), *_accuracy(bench)]


def _speed(bench: Bench, width: int, at_least: float | None) -> Figure:
    rounds = bench.alternately({kind: lambda kind=kind: _epoch(bench, kind, width) for kind in KINDS})  # type: ignore[misc]
    faster = ratio(rounds["float32"], rounds["mixed_bfloat16"])
    return Figure(f"precision: bfloat16 / float32, images/s, ResNet-20, width {width}", faster, at_least=at_least)


def _epoch(bench: Bench, kind: str, width: int) -> float:
    settings = resnet_settings(precision=kind, params={"width": width})
    arguments = {"module": RESNET, "data": bench.few, "settings": settings}
    return seconds(bench.call("our_fit", f"precision: {kind}, width {width}", arguments)["epochs"])


def _accuracy(bench: Bench) -> list[Figure]:
    """Each digit is judged once a seed, by the model that did not learn from its fold.

    One eval split of 600 rows cannot show 0.3 points, which would be 2 rows: all rows of all seeds together can.
    """
    right = {kind: np.array(_folds(bench, kind)) for kind in KINDS}
    differs = right["float32"] != right["mixed_bfloat16"]
    points = 100 * (right["mixed_bfloat16"].mean() - right["float32"].mean())
    error = 100 * math.sqrt(differs.sum()) / differs.size
    return [
        Figure("precision: accuracy on digits, apart", abs(points), at_most=MOST_POINTS, unit=" points"),
        Figure("precision: its standard error", error, unit=" points"),
        *(Figure(f"precision: accuracy on digits, {kind}", 100 * right[kind].mean(), unit=" %") for kind in KINDS),
    ]


def _folds(bench: Bench, kind: str) -> Any:
    settings = trainer_settings("cifar10", precision=kind)
    note = f"precision: {kind}, {SEEDS} seeds of {FOLDS} folds of digits"
    arguments = {"module": RESNET, "data": bench.digits, "settings": settings, "seeds": SEEDS, "folds": FOLDS}
    return bench.call("benchmarks.training.folds:judged", note, arguments)
