"""What is computed from kept rows against TFMA's own values for the same rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow_model_analysis as tfma
from evaluation_rows import kept_of, scores_like_taxi
from tensorflow_model_analysis.proto import config_pb2

from components.evaluation import confidence, measures

# TFMA takes arrays of one value for numbers, and divides by zero at thresholds that no row reaches.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Conversion of an array with ndim > 0:DeprecationWarning",
    "ignore:.* encountered in divide:RuntimeWarning",
)

MADE = scores_like_taxi(2000)
# TFMA puts scores into 10,000 bins for these; the others it computes row by row, in float32.
BINNED = {"AUC": 2e-4, "AUCPrecisionRecall": 2e-3}
EXACT = 2e-5


def by_tfma(labels: Any, predictions: Any, names: Sequence[str], weights: Any = None) -> dict[str, float]:
    """TFMA's values of metrics, by class name."""
    rows = pd.DataFrame({"label": list(labels), "prediction": list(predictions)})
    if weights is not None:
        rows["weight"] = weights
    metrics = [config_pb2.MetricConfig(class_name=name, config=json.dumps({"name": name})) for name in names]
    config = config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                label_key="label",
                prediction_key="prediction",
                example_weight_key=None if weights is None else "weight",
            )
        ],
        slicing_specs=[config_pb2.SlicingSpec()],
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
    )
    found = tfma.analyze_raw_data(rows, config).get_metrics_for_slice()
    return {name: value["doubleValue"] for name, value in found.items()}


def check(labels: Any, predictions: Any, names: Sequence[str], weights: Any = None) -> None:
    """Every value agrees, and every interval holds it."""
    theirs = by_tfma(labels, predictions, names, weights)
    [ours] = confidence.measure_confidence(kept_of(labels, predictions, weights=weights), names, [()])
    assert set(ours.estimates) == set(names)
    for name in names:
        tolerance = BINNED.get(name, EXACT * max(1, abs(theirs[name])))
        assert ours.estimates[name].value == pytest.approx(theirs[name], abs=tolerance), name
        found = ours.interval(name, theirs[name])
        assert found is not None, name
        assert found.low <= theirs[name] <= found.high, name


def weights_of(rows: int) -> Any:
    """From 0 to 4."""
    return np.random.default_rng(5).integers(0, 5, rows).astype(float)


@pytest.mark.parametrize("weights", [None, weights_of(2000)], ids=["rows", "weights"])
def test_a_binary_task(weights: Any) -> None:
    names = [*measures.measure_names("binary"), "AUC", "AUCPrecisionRecall"]
    check(MADE.labels, MADE.scores, names, weights)


@pytest.mark.parametrize("weights", [None, weights_of(400)], ids=["rows", "weights"])
def test_several_classes(weights: Any) -> None:
    generator = np.random.default_rng(2)
    predictions = generator.dirichlet(np.full(8, 0.5), size=400).astype(np.float32)
    labels = np.array([generator.choice(8, p=row / row.sum()) for row in predictions.astype(float)])
    names = [name for name in measures.measure_names("multiclass") if name.startswith("Sparse")]
    check(labels, predictions, names, weights)


@pytest.mark.parametrize("weights", [None, weights_of(500)], ids=["rows", "weights"])
def test_a_regression(weights: Any) -> None:
    generator = np.random.default_rng(3)
    predictions = generator.gamma(2, 3, size=500).astype(np.float32)
    labels = (predictions * generator.normal(1, 0.2, size=500) + 1).clip(0.5).astype(np.float32)
    check(labels, predictions, measures.measure_names("regression"), weights)


def test_the_exact_area_of_few_positives_among_crowded_scores_is_shown() -> None:
    # As in a slice of the taxi rides: most scores in TFMA's lowest bins, few of them of positives.
    scores = np.float32(np.random.default_rng(6).gamma(2.5, 1e-4, 3000))
    labels = np.zeros(3000, np.int64)
    labels[[5, 50, 500]] = 1
    scores[[5, 50, 500]] = 7.6e-5, 3.1e-4, 5.6e-4
    theirs = by_tfma(labels, scores, ["AUC"])
    [ours] = confidence.measure_confidence(kept_of(labels, scores), ["AUC"], [()])
    above = scores[labels == 1][:, None] - scores[labels == 0]
    exact = ((above > 0) + (above == 0) / 2).mean()
    assert abs(theirs["AUC"] - exact) > 0.02
    assert ours.value("AUC", theirs["AUC"]) == pytest.approx(exact, abs=1e-12)


def test_where_scores_crowd_together_the_exact_area_is_shown() -> None:
    generator = np.random.default_rng(4)
    labels = np.concatenate([np.ones(60), np.zeros(1200)]).astype(np.int64)
    # Nearly all scores are in TFMA's first bin, from 0 to 0.0001.
    scores = np.float32(np.where(labels == 1, 4e-5, 3e-5) + generator.normal(0, 1e-5, 1260)).clip(1e-6)
    theirs = by_tfma(labels, scores, ["AUC", "AUCPrecisionRecall"])
    [ours] = confidence.measure_confidence(kept_of(labels, scores), list(theirs), [()])
    above = scores[labels == 1][:, None] - scores[labels == 0]
    exact = ((above > 0) + (above == 0) / 2).mean()
    assert theirs["AUC"] == 0.5
    assert exact == pytest.approx(0.75, abs=0.1)
    assert ours.value("AUC", theirs["AUC"]) == pytest.approx(exact, abs=1e-12)
    for name in theirs:
        shown = ours.value(name, theirs[name])
        interval = ours.interval(name, shown)
        assert shown is not None
        assert interval is not None
        assert interval.low < shown < interval.high
        # TFMA's value is inside the interval of another value, or near it: that interval is not its.
        assert ours.interval(name, theirs[name]) is None
    # A value that no bins explain is of another metric than the one known here.
    assert ours.value("AUC", 0.6) == 0.6
