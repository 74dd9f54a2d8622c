"""The cifar10 recipe's TF Lite models: size, accuracy and latency, as its pipeline notes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import millrace
from benchmarks.report import Figure
from benchmarks.training.bench import Bench

RECIPE = "cifar10"
KINDS = ("int8", "dynamic")
SMALLER = 3.5
MOST_POINTS = 0.5


def measure(bench: Bench) -> list[Figure]:
    """Runs the recipe on the digits with each quantization; what comes before the TFLite node is run once.

    Size is that of the whole file, metadata and labels included, against the SavedModel's variables.
    """
    folder = bench.folder / "tflite"
    environment = millrace.write_environment(folder)
    figures = []
    for kind in KINDS:
        bench.console.print(f"tflite: {kind}", style="dim")
        setting = f"tflite.quantization={kind}"
        millrace.run(kind, environment, folder / "logs", setting, bars=False, recipe=RECIPE)
        figures += _figures(kind, _report(folder))
    return figures


def _report(folder: Path) -> dict[str, Any]:
    made = Path(millrace.output(folder, RECIPE, "TFLite", "tflite_model").uri, "report.json")
    report: dict[str, Any] = json.loads(made.read_text(encoding="utf-8"))
    return report


def _figures(kind: str, report: dict[str, Any]) -> list[Figure]:
    loss = 100 * (report["saved_model_accuracy"] - report["accuracy"])
    return [
        Figure(f"tflite, {kind}: variables / file", report["variables_bytes"] / report["size_bytes"], at_least=SMALLER),
        Figure(f"tflite, {kind}: accuracy below the SavedModel's", loss, at_most=MOST_POINTS, unit=" points"),
        Figure(f"tflite, {kind}: accuracy", 100 * report["accuracy"], unit=" %"),
        Figure(f"tflite, {kind}: latency of a row", report["latency_ms"], unit=" ms", digits=3),
    ]
