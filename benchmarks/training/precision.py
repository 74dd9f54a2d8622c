"""The cost and gain of reduced precision: mixed_bfloat16 against float32, and TF Lite's quantization."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import millrace
from benchmarks.command import Figure
from benchmarks.training.bench import (
    FEW_ROWS,
    LARGE_BATCH,
    LARGE_ROWS,
    RESNET,
    TrainingBench,
    ratio,
    resnet_settings,
    seconds,
    trainer_settings,
)

RESNET50_PARAMS = {"backbone": {"name": "ResNet50", "image_size": 224}}
POLICIES = ("float32", "mixed_bfloat16")
FASTER = 1.8
POLICY_MOST_POINTS = 0.3
SEEDS = 3
FOLDS = 3


def measure_precision(bench: TrainingBench) -> list[Figure]:
    """Images per second of ResNets, and the accuracy of the recipe's network on the digits."""
    return [_resnet50(bench), *(_resnet20(bench, width) for width in (64, 16)), *_accuracy(bench)]


def _resnet50(bench: TrainingBench) -> Figure:
    settings = resnet_settings(batch_size=LARGE_BATCH, epochs=2, steps_per_execution=1, params=RESNET50_PARAMS)
    arguments = {"module": RESNET, "data": bench.images(LARGE_ROWS), "settings": settings}
    return _speed(bench, "ResNet-50 at 224 pixels", arguments, FASTER)


def _resnet20(bench: TrainingBench, width: int) -> Figure:
    settings = resnet_settings(params={"width": width})
    arguments = {"module": RESNET, "data": bench.images(FEW_ROWS), "settings": settings}
    return _speed(bench, f"ResNet-20, width {width}", arguments, None)


def _speed(bench: TrainingBench, name: str, arguments: dict[str, Any], at_least: float | None) -> Figure:
    def execution(kind: str) -> float:
        changed = arguments | {"settings": arguments["settings"] | {"precision": kind}}
        return seconds(bench.side("our_fit", f"precision: {kind}, {name}", changed)["executions"])

    rounds = bench.alternately({kind: functools.partial(execution, kind) for kind in POLICIES})
    faster = ratio(rounds["float32"], rounds["mixed_bfloat16"])
    return Figure(f"precision: bfloat16 / float32, images/s, {name}", faster, at_least=at_least)


def _accuracy(bench: TrainingBench) -> list[Figure]:
    """Classifies each digit once per seed, by the model that did not train on its fold.

    One eval split of 600 rows cannot show 0.3 points, which would be 2 rows; all rows of all seeds together can.
    """
    is_correct = {kind: np.array(_folds(bench, kind)) for kind in POLICIES}
    differs = is_correct["float32"] != is_correct["mixed_bfloat16"]
    points = 100 * (is_correct["mixed_bfloat16"].mean() - is_correct["float32"].mean())
    error = 100 * math.sqrt(differs.sum()) / differs.size
    return [
        Figure("precision: accuracy on digits, apart", abs(points), at_most=POLICY_MOST_POINTS, unit=" points"),
        Figure("precision: its standard error", error, unit=" points"),
        *(
            Figure(f"precision: accuracy on digits, {kind}", 100 * is_correct[kind].mean(), unit=" %")
            for kind in POLICIES
        ),
    ]


def _folds(bench: TrainingBench, kind: str) -> Any:
    settings = trainer_settings("cifar10", precision=kind)
    note = f"precision: {kind}, {SEEDS} seeds of {FOLDS} folds of digits"
    arguments = {"module": RESNET, "data": bench.digits(), "settings": settings, "seeds": SEEDS, "folds": FOLDS}
    return bench.side("cross_validate", note, arguments)


TFLITE_RECIPE = "cifar10"
QUANTIZATIONS = ("int8", "dynamic")
SMALLER = 3.5
TFLITE_MOST_POINTS = 0.5


def measure_tflite(bench: TrainingBench) -> list[Figure]:
    """Runs the recipe on the digits with each quantization; the nodes before TFLite run once.

    The size is that of the whole file, including metadata and labels, against the SavedModel's variables.
    """
    folder = bench.folder / "tflite"
    environment = millrace.write_environment(folder)
    figures = []
    for kind in QUANTIZATIONS:
        bench.say(f"tflite: {kind}")
        setting = f"tflite.quantization={kind}"
        millrace.run(kind, environment, folder / "logs", setting, bars=False, recipe=TFLITE_RECIPE)
        figures += _figures(kind, _report(folder))
    return figures


def _report(folder: Path) -> dict[str, Any]:
    path = Path(millrace.output(folder, TFLITE_RECIPE, "TFLite", "tflite_model").uri, "report.json")
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _figures(kind: str, report: dict[str, Any]) -> list[Figure]:
    loss = 100 * (report["saved_model_accuracy"] - report["accuracy"])
    return [
        Figure(f"tflite, {kind}: variables / file", report["variables_bytes"] / report["size_bytes"], at_least=SMALLER),
        Figure(f"tflite, {kind}: accuracy below the SavedModel's", loss, at_most=TFLITE_MOST_POINTS, unit=" points"),
        Figure(f"tflite, {kind}: accuracy", 100 * report["accuracy"], unit=" %"),
        Figure(f"tflite, {kind}: latency of a row", report["latency_ms"], unit=" ms", digits=3),
    ]
