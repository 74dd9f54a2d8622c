"""A model with two outputs that learn a label each, from the raw files to the served answer."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from copied_project import Project

RIDE = Path(__file__).parent / "ride"
JUDGE_PAYMENT = (
    *("--set", "evaluator.prediction_key=payment"),
    *("--set", "evaluator.metrics={SparseCategoricalAccuracy: {lower_bound: 0.5}}"),
)


@pytest.fixture
def ride(project: Project) -> Project:
    """The project with a recipe of two heads."""
    shutil.copytree(RIDE, project.folder / "recipes" / "ride", ignore=shutil.ignore_patterns("__pycache__"))
    return project


def newest(project: Project, node: str, output: str) -> Path:
    folder = project.folder / "artifacts" / "pipelines" / "ride" / node / output
    return max(folder.iterdir(), key=lambda made: int(made.name))


def read(path: Path) -> dict:  # type: ignore[type-arg]
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_two_heads_are_trained_judged_one_by_one_and_served_together(ride: Project) -> None:
    finished = ride.millrace("run", "ride")
    assert finished.code == 0, finished.output + finished.errors
    history = list(csv.DictReader((newest(ride, "Trainer", "model_run") / "history.csv").read_text().splitlines()))
    metrics = ("loss", "tip_loss", "payment_loss", "tip_auc", "payment_accuracy")
    assert {name for row in history for name in row} == {"epoch", *metrics, *(f"val_{name}" for name in metrics)}
    losses = {name: float(value) for name, value in history[-1].items()}
    assert losses["val_loss"] == pytest.approx(losses["val_tip_loss"] + 0.5 * losses["val_payment_loss"], rel=1e-4)

    pushed = max((ride.folder / "artifacts" / "serving" / "ride").iterdir())
    card = read(pushed / "assets.extra" / "card.json")
    assert card["label"] == {"tip": "big_tip", "payment": "paid_by"}
    assert set(card["signatures"]["serving_default"]["outputs"]) == {"tip", "payment"}
    best = max(float(row["val_payment_accuracy"]) for row in history)
    assert card["validation_metrics"]["payment_accuracy"] == pytest.approx(best, abs=1e-6)
    [auc] = read(newest(ride, "Evaluator", "evaluation") / "summary.json")["metrics"]
    # Keras counts scores in 200 bins.
    assert auc["value"] == pytest.approx(card["validation_metrics"]["tip_auc"], abs=0.005)
    report = read(newest(ride, "TFLite", "tflite_model") / "report.json")
    assert (report["judged_by"], report["blessed"]) == ("tip", True)
    assert set(report["differences"]) == {"tip", "payment"}
    answer = tf.saved_model.load(str(pushed)).signatures["predict"](
        fare=tf.constant([5.0]), trip_miles=tf.constant([1.0]), trip_start_hour=tf.constant([9], tf.int64)
    )
    assert (answer["tip"].shape, answer["payment"].shape) == ([1, 1], [1, 3])
    np.testing.assert_allclose(tf.reduce_sum(answer["payment"]), 1, rtol=1e-6)

    # The other head of the same model.
    judged = ride.millrace("run", "ride", *JUDGE_PAYMENT)
    assert judged.code == 0, judged.output + judged.errors
    [accuracy] = read(newest(ride, "Evaluator", "evaluation") / "summary.json")["metrics"]
    assert accuracy["value"] == pytest.approx(card["validation_metrics"]["payment_accuracy"], abs=1e-6)
    assert read(newest(ride, "TFLite", "tflite_model") / "report.json")["judged_by"] == "payment"
    assert "Trainer           cached" in judged.output
