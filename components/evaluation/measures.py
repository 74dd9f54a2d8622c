"""Metrics as functions of sums over rows, from which their intervals are computed.

Each metric has the name of its class in TFMA or Keras, and that class's defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from components.evaluation.predictions import Array, Task

EPSILON = 1e-7
"""Keras's fuzz factor: probabilities are kept this far from 0 and 1 before their logarithm is taken."""


def prediction_errors(labels: Array, predictions: Array) -> Array:
    """How wrong each prediction is, to rank rows before the kind of task is known.

    Args:
        labels: Class ids or numbers, float64 [n].
        predictions: float [n, k].

    Returns:
        float64 [n]. With one number per row, its distance from the label, which ranks rows as both squared errors and
        the cross-entropies of scores do; with several, the cross-entropy. Infinite where a prediction is not a number.
    """
    if predictions.shape[1] == 1:
        errors = np.abs(predictions[:, 0].astype(np.float64) - labels)
    else:
        errors = multiclass_cross_entropy(labels, predictions)
    return np.where(np.isnan(errors), np.inf, errors)


def binary_cross_entropy(labels: Array, scores: Array) -> Array:
    """-log p of the true class, as tf_keras.losses.BinaryCrossentropy, float64 [n]."""
    score = np.clip(scores.astype(np.float64), EPSILON, 1 - EPSILON)
    return np.asarray(-np.where(labels == 1, np.log(score + EPSILON), np.log(1 - score + EPSILON)))


def multiclass_cross_entropy(labels: Array, predictions: Array) -> Array:
    """-log p of the true class, as tf_keras.losses.SparseCategoricalCrossentropy, float64 [n]."""
    every_class = probabilities(predictions)
    of_label = every_class[np.arange(len(labels)), labels.astype(np.int64)]
    return np.asarray(-np.log(np.clip(of_label, EPSILON, 1 - EPSILON)))


def probabilities(predictions: Array) -> Array:
    """Predictions of several classes as probabilities, float64 [n, k].

    Rows that are not probabilities, at least 0 with a sum of 1, are taken to be logits and go through softmax.
    """
    values = predictions.astype(np.float64)
    proper = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 0.01)
    if proper.all():
        return values
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return np.where(proper[:, None], values, powers / powers.sum(axis=1, keepdims=True))


THRESHOLD = 0.5
TOP_K = 5


@dataclass(frozen=True)
class Measure:
    """A metric.

    Attributes:
        columns: Computes, from labels and predictions, the columns that are summed up over rows, [n, s].
        value: Computes the metric from the sums, [s] or [s, replicates].
        proportion: Whether the metric is the share of the first column's rows among the second's; both are bool.
    """

    columns: Callable[[Array, Array], Array]
    value: Callable[[Array], Array]
    proportion: bool = False


def measure_named(task: Task, name: str) -> Measure | None:
    """A metric by its class name; None for one that is not a function of sums."""
    return _BY_TASK[task].get(name)


def measure_names(task: Task) -> list[str]:
    """The class names of the metrics that `measure_named` knows."""
    return list(_BY_TASK[task])


def _ratio(sums: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[0] / sums[1])


def _share(rows: Callable[[Array, Array], tuple[Array, Array]]) -> Measure:
    """A proportion; `rows` returns which rows are successes and which are trials."""

    def columns(labels: Array, predictions: Array) -> Array:
        success, trial = rows(labels, predictions)
        return np.stack([success & trial, trial], axis=1)

    return Measure(columns, _ratio, proportion=True)


def _mean(of_rows: Callable[[Array, Array], Array], of_mean: Callable[[Array], Array] = np.asarray) -> Measure:
    def columns(labels: Array, predictions: Array) -> Array:
        return np.stack([of_rows(labels, predictions), np.ones_like(labels)], axis=1)

    return Measure(columns, lambda sums: of_mean(_ratio(sums)))


def _positive(labels: Array, scores: Array) -> tuple[Array, Array]:
    return labels == 1, scores > THRESHOLD


def _among(success: Callable[[Array, Array], Array], trial: Callable[[Array, Array], Array]) -> Measure:
    """A proportion in terms of whether rows are and are predicted positive."""

    def rows(labels: Array, scores: Array) -> tuple[Array, Array]:
        true, predicted = _positive(labels, scores)
        return success(true, predicted), trial(true, predicted)

    return _share(rows)


def _confusion(labels: Array, scores: Array) -> Array:
    """True positives, false positives, false negatives, true negatives."""
    true, predicted = _positive(labels, scores)
    return np.stack([true & predicted, ~true & predicted, true & ~predicted, ~true & ~predicted], axis=1)


def _f1(sums: Array) -> Array:
    tp, fp, fn, _ = sums
    return _ratio(np.stack([2 * tp, 2 * tp + fp + fn]))


def _balanced_accuracy(sums: Array) -> Array:
    tp, fp, fn, tn = sums
    return np.asarray((_ratio(np.stack([tp, tp + fn])) + _ratio(np.stack([tn, tn + fp]))) / 2)


def _matthews(sums: Array) -> Array:
    tp, fp, fn, tn = sums
    scale = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _ratio(np.stack([tp * tn - fp * fn, scale]))


def _moments(labels: Array, predictions: Array) -> Array:
    columns = [np.ones_like(labels), labels, predictions, labels**2, predictions**2, labels * predictions]
    return np.stack(columns, axis=1)


def _squared_correlation(sums: Array) -> Array:
    rows, y, p, yy, pp, yp = sums
    covariance = yp / rows - y * p / rows**2
    return _ratio(np.stack([covariance**2, (yy / rows - (y / rows) ** 2) * (pp / rows - (p / rows) ** 2)]))


def _percentage_error(labels: Array, predictions: Array) -> Array:
    """Leaves out the rows whose label is 0, as TFMA does."""
    counted = labels != 0
    off = 100 * np.abs(predictions - labels) / np.where(counted, np.abs(labels), 1)
    return np.stack([off * counted, counted], axis=1)


def _squared_logarithmic_error(labels: Array, predictions: Array) -> Array:
    logs = [np.log(np.maximum(values, EPSILON) + 1) for values in (labels, predictions)]
    return np.asarray((logs[1] - logs[0]) ** 2)


def _right(labels: Array, chances: Array) -> tuple[Array, Array]:
    return chances.argmax(axis=1) == labels, np.ones(len(labels), bool)


def _in_top(labels: Array, chances: Array) -> tuple[Array, Array]:
    chance = chances[np.arange(len(labels)), labels.astype(np.int64)]
    return (chances > chance[:, None]).sum(axis=1) < TOP_K, np.ones(len(labels), bool)


_NUMBERS = {
    "Calibration": Measure(lambda labels, predictions: np.stack([predictions, labels], axis=1), _ratio),
    "MeanLabel": _mean(lambda labels, _: labels),
    "MeanPrediction": _mean(lambda _, predictions: predictions),
    "MeanSquaredError": _mean(lambda labels, predictions: (predictions - labels) ** 2),
    "RootMeanSquaredError": _mean(lambda labels, predictions: (predictions - labels) ** 2, np.sqrt),
    "MeanAbsoluteError": _mean(lambda labels, predictions: np.abs(predictions - labels)),
}
_AMOUNTS = {
    "MeanAbsolutePercentageError": Measure(_percentage_error, _ratio),
    "MeanSquaredLogarithmicError": _mean(_squared_logarithmic_error),
    "SquaredPearsonCorrelation": Measure(_moments, _squared_correlation),
}
_COUNTS = {
    "BinaryAccuracy": _among(lambda true, predicted: true == predicted, lambda true, _: np.ones_like(true)),
    "Precision": _among(lambda true, _: true, lambda _, predicted: predicted),
    "Recall": _among(lambda _, predicted: predicted, lambda true, _: true),
    "Specificity": _among(lambda _, predicted: ~predicted, lambda true, _: ~true),
    "FallOut": _among(lambda _, predicted: predicted, lambda true, _: ~true),
    "MissRate": _among(lambda _, predicted: ~predicted, lambda true, _: true),
    "NegativePredictiveValue": _among(lambda true, _: ~true, lambda _, predicted: ~predicted),
    "FalseDiscoveryRate": _among(lambda true, _: ~true, lambda _, predicted: predicted),
    "FalseOmissionRate": _among(lambda true, _: true, lambda _, predicted: ~predicted),
    "Prevalence": _among(lambda true, _: true, lambda true, _: np.ones_like(true)),
    "PredictedPositiveRate": _among(lambda _, predicted: predicted, lambda true, _: np.ones_like(true)),
    "F1Score": Measure(_confusion, _f1),
    "BalancedAccuracy": Measure(_confusion, _balanced_accuracy),
    "MatthewsCorrelationCoefficient": Measure(_confusion, _matthews),
    "BinaryCrossentropy": _mean(binary_cross_entropy),
    "BinaryCrossEntropy": _mean(binary_cross_entropy),
}
_SHORT = {
    "PPV": "Precision",
    "TPR": "Recall",
    "TNR": "Specificity",
    "FPR": "FallOut",
    "FNR": "MissRate",
    "NPV": "NegativePredictiveValue",
}
_CLASSES = {
    "SparseCategoricalAccuracy": _share(_right),
    "CategoricalAccuracy": _share(_right),
    "SparseTopKCategoricalAccuracy": _share(_in_top),
    "TopKCategoricalAccuracy": _share(_in_top),
    "SparseCategoricalCrossentropy": _mean(multiclass_cross_entropy),
    "CategoricalCrossentropy": _mean(multiclass_cross_entropy),
    "CategoricalCrossEntropy": _mean(multiclass_cross_entropy),
}
_BY_TASK: dict[Task, dict[str, Measure]] = {
    "binary": _NUMBERS | _COUNTS | {short: _COUNTS[name] for short, name in _SHORT.items()},
    "multiclass": _CLASSES,
    "regression": _NUMBERS | _AMOUNTS,
    "other": {},
}
