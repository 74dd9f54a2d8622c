"""The metrics that a recipe can name are those that TFMA computes as one number."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow_model_analysis as tfma
from pydantic import ValidationError
from tensorflow_model_analysis.proto import config_pb2

from components.evaluation.metric_names import CLASSES, METRICS, NUMBERS, ONE_HOT, TWO
from components.evaluation.settings import EvaluatorSettings

RANDOM = np.random.default_rng(0)
ROWS = 40
IDS = RANDOM.integers(0, 6, ROWS)
SCORES = RANDOM.random((ROWS, 6), np.float32) + np.eye(6, dtype=np.float32)[IDS]
HALVES, NOISE = IDS % 2, RANDOM.random(ROWS)
LABELS_AND_PREDICTIONS = {
    TWO: (HALVES.astype(float), HALVES * 0.4 + NOISE * 0.6),
    CLASSES: (IDS, SCORES / SCORES.sum(axis=1, keepdims=True)),
    ONE_HOT: (np.eye(6, dtype=np.float32)[IDS], SCORES / SCORES.sum(axis=1, keepdims=True)),
    NUMBERS: (IDS + 1.0, IDS + 1 + NOISE),
}


# TFMA's own, and an error only because tests make warnings errors.
@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("task", LABELS_AND_PREDICTIONS)
def test_each_metric_is_a_finite_number_for_its_task(task: str) -> None:
    names = [name for name, metric in METRICS.items() if task in metric.tasks]
    labels, predictions = LABELS_AND_PREDICTIONS[task]
    config = config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(label_key="label", prediction_key="prediction")],
        slicing_specs=[config_pb2.SlicingSpec()],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[config_pb2.MetricConfig(class_name=name, config=json.dumps({"name": name})) for name in names]
            )
        ],
    )
    rows = pd.DataFrame({"label": list(labels), "prediction": [np.atleast_1d(row) for row in predictions]})
    [(_, computed)] = tfma.analyze_raw_data(rows, config).slicing_metrics
    values = {
        name: value["doubleValue"]
        for by_class in computed.values()
        for by_name in by_class.values()
        for name, value in by_name.items()
    }
    assert set(names) <= values.keys()
    assert all(np.isfinite(float(values[name])) for name in names)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RMSE", "Did you mean RootMeanSquaredError?"),
        ("accuracy", "Did you mean BinaryAccuracy or SparseCategoricalAccuracy?"),
        ("roc_auc", "Did you mean AUC?"),
        ("MeanSquareError", "Did you mean MeanSquaredError?"),
        ("Beauty", "docs/recipes.md lists them by task."),
    ],
)
def test_a_metric_that_does_not_exist(name: str, meant: str) -> None:
    with pytest.raises(ValidationError) as caught:
        EvaluatorSettings.model_validate({"metrics": {"AUC": {"lower_bound": 0.5}, name: {}}})
    assert f"there is no metric {name}. {meant}" in str(caught.value)


def test_an_error_is_better_when_it_is_lower() -> None:
    bars = {
        "RootMeanSquaredError": {"max_loss": 1},
        "MissRate": None,
        "Recall": {"direction": "lower_is_better"},
        "AUC": {},
    }
    settings = EvaluatorSettings.model_validate({"metrics": bars})
    directions = {name: bar.direction for name, bar in settings.metrics.items()}
    assert directions == {
        "RootMeanSquaredError": "lower_is_better",
        "MissRate": "lower_is_better",
        "Recall": "lower_is_better",
        "AUC": "higher_is_better",
    }
