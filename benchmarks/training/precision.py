"""mixed_bfloat16 against float32: speed and accuracy."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from benchmarks.report import Figure
from benchmarks.training.bench import (
    LARGE_BATCH,
    RESNET,
    RESNET50,
    Bench,
    ratio,
    resnet_settings,
    seconds,
    trainer_settings,
)

RESNET50_PARAMS = {"backbone": {"name": "ResNet50", "image_size": 224}}
KINDS = ("float32", "mixed_bfloat16")
FASTER = 1.8
MOST_POINTS = 0.3
SEEDS = 3
FOLDS = 3


def measure(bench: Bench) -> list[Figure]:
    """Images a second of ResNets, and accuracy of the recipe's network on the digits."""
    return [_resnet50(bench), *(_resnet20(bench, width) for width in (64, 16)), *_accuracy(bench)]


def _resnet50(bench: Bench) -> Figure:
    settings = resnet_settings(batch_size=LARGE_BATCH, epochs=2, steps_per_execution=1, params=RESNET50_PARAMS)
    arguments = {"module": RESNET50, "data": bench.to_enlarge, "settings": settings}
    return _speed(bench, "ResNet-50 at 224 pixels", arguments, FASTER)


def _resnet20(bench: Bench, width: int) -> Figure:
    settings = resnet_settings(params={"width": width})
    return _speed(bench, f"ResNet-20, width {width}", {"module": RESNET, "data": bench.few, "settings": settings}, None)


def _speed(bench: Bench, name: str, arguments: dict[str, Any], at_least: float | None) -> Figure:
    def execution(kind: str) -> float:
        given = arguments | {"settings": arguments["settings"] | {"precision": kind}}
        return seconds(bench.call("our_fit", f"precision: {kind}, {name}", given)["executions"])

    rounds = bench.alternately({kind: functools.partial(execution, kind) for kind in KINDS})
    faster = ratio(rounds["float32"], rounds["mixed_bfloat16"])
    return Figure(f"precision: bfloat16 / float32, images/s, {name}", faster, at_least=at_least)


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
