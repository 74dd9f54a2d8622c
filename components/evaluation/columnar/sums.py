"""What TFMA's combiners add up over rows, as columns that are added up over a batch at once.

The combiners are those of tensorflow_model_analysis 0.47 and 0.52; what is private in them has no public form. Their
sums are handed back to them, and what follows from the sums is their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration,
    calibration_histogram,
    cross_entropy_metrics,
    example_count,
    mean_regression_error,
    squared_pearson_correlation,
    tf_metric_wrapper,
    tjur_discrimination,
)

from components.engine import NotColumnar
from components.evaluation.predictions import Array

Combiner: TypeAlias = Any
MetricsDict: TypeAlias = dict[Any, Any]


@dataclass(frozen=True)
class Judged:
    """A model's predictions in a batch, as TFMA prepares them.

    Attributes:
        labels: [rows] or [rows, …].
        predictions: [rows] or [rows, …].
        weights: float64 [rows].
    """

    labels: Array
    predictions: Array
    weights: Array

    def numbers(self) -> tuple[Array, Array]:
        """Labels and predictions, each [rows].

        Raises:
            NotColumnar: They are not one number each.
        """
        rows = len(self.weights)
        for name, values in (("labels", self.labels), ("predictions", self.predictions)):
            if values.size != rows or values.dtype.kind not in "biuf":
                raise NotColumnar(f"{name} of shape {list(values.shape)} and type {values.dtype} are not numbers")
        return self.labels.reshape(rows), self.predictions.reshape(rows)


@dataclass(frozen=True)
class Sums:
    """Plain sums.

    Attributes:
        columns: What is summed up, float64 [rows] each.
        output: Metrics from the sums.
        size: How many sums.
    """

    columns: Callable[[Judged], Sequence[Array]]
    output: Callable[[Array], MetricsDict]
    size: int


@dataclass(frozen=True)
class Histogram:
    """Sums by bins of the predictions.

    Attributes:
        bins: The bin of each row, int64 [rows].
        columns: What is summed up in each bin, float64 [rows] each.
        output: Metrics from the bins that have rows, ascending, and the sums in each, [bins, sums].
        num_bins: How many bins there can be.
        most_kept: If more bins of all slices have rows, neighbours become one; None if each bin counts.
    """

    bins: Callable[[Judged], Array]
    columns: Callable[[Judged], Sequence[Array]]
    output: Callable[[Array, Array], MetricsDict]
    num_bins: int
    most_kept: int | None = None


def sums_of(combiner: Combiner) -> Sums | Histogram:
    """Returns what a combiner of TFMA adds up.

    Raises:
        NotColumnar: It is not known here, or has options that are not.
    """
    known = _KNOWN.get(type(combiner))
    if known is None:
        raise NotColumnar(f"{type(combiner).__name__.strip('_')} is not known here")
    options = vars(combiner)
    key = options.get("_key") or options.get("_metric_key")
    sub_keys = [options.get("_sub_key"), key.sub_key if key else None, *(k.sub_key for k in options.get("_keys", []))]
    if any(sub_keys) or options.get("_aggregation_type") or options.get("_class_weights"):
        raise NotColumnar(f"{type(combiner).__name__.strip('_')} is asked for single classes or for an average of them")
    return known(combiner)


def _filled(combiner: Combiner, names: Sequence[str], totals: Array) -> MetricsDict:
    accumulator = combiner.create_accumulator()
    for name, total in zip(names, totals, strict=True):
        setattr(accumulator, name, float(total))
    metrics: MetricsDict = combiner.extract_output(accumulator)
    return metrics


def _example_count(combiner: Combiner) -> Sums:
    return Sums(lambda judged: [judged.weights], lambda totals: combiner.extract_output(float(totals[0])), 1)


def _calibration(combiner: Combiner) -> Sums:
    def columns(judged: Judged) -> list[Array]:
        labels, predictions = _as_float64(judged)
        return [judged.weights, labels * judged.weights, predictions * judged.weights]

    names = ("total_weighted_examples", "total_weighted_labels", "total_weighted_predictions")
    return Sums(columns, lambda totals: _filled(combiner, names, totals), 3)


def _squared_pearson(combiner: Combiner) -> Sums:
    def columns(judged: Judged) -> list[Array]:
        labels, predictions = _as_float64(judged)
        products = (labels, predictions, labels**2, predictions**2, labels * predictions)
        return [judged.weights, *(product * judged.weights for product in products)]

    names = (
        "total_weighted_examples",
        "total_weighted_labels",
        "total_weighted_predictions",
        "total_weighted_squared_labels",
        "total_weighted_squared_predictions",
        "total_weighted_labels_times_predictions",
    )
    return Sums(columns, lambda totals: _filled(combiner, names, totals), 6)


def _tjur(combiner: Combiner) -> Sums:
    def columns(judged: Judged) -> list[Array]:
        labels, predictions = _as_float64(judged)
        positive, negative = labels * judged.weights, (1 - labels) * judged.weights
        return [negative, positive, negative * predictions, positive * predictions]

    names = (
        "total_negative_weighted_labels",
        "total_positive_weighted_labels",
        "total_negative_weighted_predictions",
        "total_positive_weighted_predictions",
    )
    return Sums(columns, lambda totals: _filled(combiner, names, totals), 4)


def _mean_error(error: Callable[[Array, Array], Array]) -> Callable[[Combiner], Sums]:
    def sums(combiner: Combiner) -> Sums:
        def columns(judged: Judged) -> list[Array]:
            with np.errstate(divide="ignore", invalid="ignore"):
                errors = np.asarray(error(*judged.numbers()), np.float64)
            known = ~np.isnan(errors)
            return [np.where(known, errors * judged.weights, 0), known * judged.weights]

        names = ("total_regression_error", "total_example_weights")
        return Sums(columns, lambda totals: _filled(combiner, names, totals), 2)

    return sums


def _percentage_error(labels: Array, predictions: Array) -> Array:
    return np.where(labels == 0, np.nan, 100 * np.abs((labels - predictions) / labels))


def _cross_entropy(combiner: Combiner) -> Sums:
    if combiner._from_logits or combiner._label_smoothing:
        raise NotColumnar("BinaryCrossEntropy has from_logits or label_smoothing")

    def columns(judged: Judged) -> list[Array]:
        labels, predictions = judged.numbers()
        with np.errstate(divide="ignore", invalid="ignore"):
            entropies = -labels * np.log(predictions) - (1 - labels) * np.log(1 - predictions)
        return [entropies * judged.weights, judged.weights]

    return Sums(columns, lambda totals: _filled(combiner, ("total_cross_entropy", "total_example_weights"), totals), 2)


def _confusion_matrices(combiner: Combiner) -> Sums:
    if combiner._example_id_key or not combiner._enable_fractional_labels:
        raise NotColumnar("a confusion matrix has examples, or labels that are not classes")
    thresholds = combiner._binary_confusion_matrices._thresholds

    def columns(judged: Judged) -> list[Array]:
        labels, predictions = _classes(judged)
        positive, negative = labels * judged.weights, (1 - labels) * judged.weights
        above = [predictions > threshold for threshold in thresholds]
        return [
            part for over in above for part in (positive * over, negative * ~over, negative * over, positive * ~over)
        ]

    def output(totals: Array) -> MetricsDict:
        computations = binary_confusion_matrices.bcm_computations
        accumulator = {}
        for threshold, cells in zip(thresholds, np.reshape(totals, (-1, 4)).tolist(), strict=True):
            matrix = computations.Matrix(**dict(zip(("tp", "tn", "fp", "fn"), cells, strict=True)))
            accumulator[threshold] = computations._ThresholdEntry(matrix, [], [], [], [])
        metrics: MetricsDict = combiner.extract_output(accumulator)
        return metrics

    return Sums(columns, output, 4 * len(thresholds))


def _histogram(combiner: Combiner) -> Histogram:
    if not (combiner._prediction_based_bucketing and combiner._fractional_labels):
        raise NotColumnar("a calibration histogram is not by predictions between 0 and 1")
    last = combiner._num_buckets + 1

    def bins(judged: Judged) -> Array:
        _, predictions = _as_float64(judged)
        if np.isnan(predictions).any():
            raise NotColumnar("a prediction is not a number")
        places = (predictions - combiner._left) / combiner._range * combiner._num_buckets + 1
        return np.asarray(np.clip(places, 0, last), np.int64)

    def columns(judged: Judged) -> list[Array]:
        labels, predictions = _classes(judged)
        return [labels * judged.weights, predictions * judged.weights, judged.weights]

    def output(used: Array, sums: Array) -> MetricsDict:
        filled = zip(used.tolist(), sums.tolist(), strict=True)
        buckets = {number: calibration_histogram.Bucket(number, *parts) for number, parts in filled if parts[2]}
        metrics: MetricsDict = combiner.extract_output(buckets)
        return metrics

    return Histogram(bins, columns, output, last + 1)


def _keras_means(combiner: Combiner) -> Sums:
    """Keras metrics that are means over rows of a function of the row."""
    combiner.setup()
    [metrics] = combiner._metrics.values()
    functions = [_row_function(metric) for metric in metrics]

    def columns(judged: Judged) -> list[Array]:
        labels, predictions = (
            tf.constant(values.reshape(len(values), -1), tf.float32) for values in (judged.labels, judged.predictions)
        )
        rows = len(judged.weights)
        parts = []
        for function in functions:
            values = function(labels, predictions).numpy().astype(np.float64).reshape(rows, -1).mean(axis=1)
            parts += [values * judged.weights, judged.weights]
        return parts

    def output(totals: Array) -> MetricsDict:
        accumulator = combiner.create_accumulator()
        for number, (total, count) in enumerate(np.reshape(totals, (-1, 2)).astype(np.float32)):
            accumulator.add_weights(0, number, [total, count])
        computed: MetricsDict = combiner.extract_output(accumulator)
        return computed

    return Sums(columns, output, 2 * len(functions))


def _row_function(metric: tf_keras.metrics.Metric) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    if type(metric) is tf_keras.metrics.RootMeanSquaredError:
        return lambda labels, predictions: tf.math.squared_difference(predictions, labels)
    if isinstance(metric, tf_keras.metrics.MeanMetricWrapper) and metric.dtype == "float32":
        return lambda labels, predictions: metric._fn(labels, predictions, **metric._fn_kwargs)
    raise NotColumnar(f"{type(metric).__name__} is no mean over rows")


def _as_float64(judged: Judged) -> tuple[Array, Array]:
    labels, predictions = judged.numbers()
    return labels.astype(np.float64), predictions.astype(np.float64)


def _classes(judged: Judged) -> tuple[Array, Array]:
    """Labels between 0 and 1, and predictions, float64 [rows] each."""
    labels, predictions = _as_float64(judged)
    if not ((labels >= 0) & (labels <= 1)).all():
        raise NotColumnar("a label is not between 0 and 1")
    return labels, predictions


_KNOWN: dict[type, Callable[[Combiner], Sums | Histogram]] = {
    example_count._ExampleCountCombiner: _example_count,
    calibration._WeightedLabelsPredictionsExamplesCombiner: _calibration,
    squared_pearson_correlation._SquaredPearsonCorrelationCombiner: _squared_pearson,
    tjur_discrimination._TjurDiscriminationCombiner: _tjur,
    mean_regression_error._MeanAbsoluteErrorCombiner: _mean_error(lambda labels, found: np.abs(labels - found)),
    mean_regression_error._MeanSquaredErrorCombiner: _mean_error(lambda labels, found: (labels - found) ** 2),
    mean_regression_error._MeanAbsolutePercentageErrorCombiner: _mean_error(_percentage_error),
    mean_regression_error._MeanSquaredLogarithmicErrorCombiner: _mean_error(
        lambda labels, found: (np.log(labels + 1) - np.log(found + 1)) ** 2
    ),
    cross_entropy_metrics._BinaryCrossEntropyCombiner: _cross_entropy,
    binary_confusion_matrices._BinaryConfusionMatrixCombiner: _confusion_matrices,
    calibration_histogram._CalibrationHistogramCombiner: _histogram,
    tf_metric_wrapper._CompilableMetricsCombiner: _keras_means,
}
