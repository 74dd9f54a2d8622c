"""What the predictions show beyond metrics, as plain data: calibration, confusion, curves and the worst rows."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.core.example.example_pb2 import Example

from components.evaluation import areas, measures, predictions
from components.evaluation.measures import THRESHOLD
from components.evaluation.predictions import Array, PredictionsTable, ScoredRows, Task, WorstRow
from contracts.evaluation import CalibrationBin, Confusion, Insights, Point, Scores, WorstExample

CALIBRATION_BINS = 10
SCORE_BINS = 20
MAX_POINTS = 200
MAX_CLASSES = 100
"""With more classes there is no confusion matrix; it would take megabytes and be unreadable."""


def calibration(rows: ScoredRows) -> list[CalibrationBin]:
    """Predictions compared with the truth, in bins.

    In a binary task, the bins are ranges of the score of equal width. With several classes, they are those of the top
    score, which is compared with whether that class was right. For numbers, they are groups of equally many rows by
    prediction. Means are weighted; bins without rows, or with rows that weigh nothing, are left out.
    """
    labels, predictions = _to_calibrate(rows)
    if rows.task == "regression":
        edges = np.unique(np.quantile(predictions, np.linspace(0, 1, CALIBRATION_BINS + 1)))
    else:
        edges = np.linspace(0, 1, CALIBRATION_BINS + 1)
    # A single distinct value makes a bin of width 0.
    edges = edges if len(edges) > 1 else np.repeat(edges, 2)
    places = np.clip(np.searchsorted(edges, predictions, side="right") - 1, 0, len(edges) - 2)
    return [
        CalibrationBin(
            low=float(edges[place]),
            high=float(edges[place + 1]),
            rows=int(inside.sum()),
            mean_prediction=float(np.average(predictions[inside], weights=rows.weights[inside])),
            mean_label=float(np.average(labels[inside], weights=rows.weights[inside])),
            weight=float(rows.weights[inside].sum()),
        )
        for place in range(len(edges) - 1)
        if rows.weights[inside := places == place].any()
    ]


def calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """The expected calibration error: the weighted mean over rows of the distance between prediction and truth by bin.

    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning, AAAI; for the
    top score of several classes Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML.
    """
    weights = [part.rows if part.weight is None else part.weight for part in bins]
    distances = [abs(part.mean_prediction - part.mean_label) for part in bins]
    return float(np.average(distances, weights=weights))


def confusion(rows: ScoredRows, classes: Sequence[str]) -> Confusion | None:
    """The number of rows by true class (rows) and predicted class (columns); None if there are too many classes."""
    size = len(classes)
    if size > MAX_CLASSES:
        return None
    places = rows.labels.astype(np.int64) * size + predicted(rows)
    counts = np.bincount(places, minlength=size * size).reshape(size, size)
    threshold = THRESHOLD if rows.task == "binary" else None
    return Confusion(labels=list(classes), counts=counts.tolist(), threshold=threshold)


def predicted(rows: ScoredRows) -> Array:
    """The predicted classes, int64 [n]."""
    if rows.task == "binary":
        return np.asarray(rows.predictions > THRESHOLD, np.int64)
    return np.asarray(rows.predictions.argmax(axis=1), np.int64)


def scores(rows: ScoredRows) -> list[Scores]:
    """A histogram of the scores of each true class."""
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    counts = [np.histogram(rows.predictions[rows.labels == label], edges)[0] for label in (0, 1)]
    return [
        Scores(label=str(label), bins=list(zip(edges[:-1].tolist(), edges[1:].tolist(), counted.tolist(), strict=True)))
        for label, counted in enumerate(counts)
    ]


def roc(rows: ScoredRows) -> list[Point] | None:
    """[false positive rate, true positive rate] at up to 200 thresholds, from (0, 0) up; None if there is one class."""
    true, false = _cumulated(rows)
    if not true[-1] or not false[-1]:
        return None
    return _thinned(false / false[-1], true / true[-1])


def precision_recall(rows: ScoredRows) -> list[Point] | None:
    """[recall, precision] at up to 200 thresholds, from the highest score down; None if there are no positive rows."""
    true, false = _cumulated(rows)
    if not true[-1]:
        return None
    true, false = true[1:], false[1:]
    return _thinned(true / true[-1], true / (true + false))


def _to_calibrate(rows: ScoredRows) -> tuple[Array, Array]:
    if rows.task != "multiclass":
        return rows.labels, rows.predictions
    return (predicted(rows) == rows.labels).astype(np.float64), rows.predictions.max(axis=1)


def _cumulated(rows: ScoredRows) -> tuple[Array, Array]:
    """The weights of true and false positives with each score as the threshold, from above the highest down."""
    weighty = rows.weights > 0
    by_level = areas.weight_by_level(rows.labels[weighty] == 1, rows.predictions[weighty], rows.weights[weighty])
    true, false = (np.concatenate([[0.0], np.cumsum(weights)]) for weights in by_level[1:])
    return true, false


def _thinned(x: Array, y: Array) -> list[Point]:
    """At most `MAX_POINTS` points of a curve, about evenly spaced along it, both ends included."""
    if len(x) > MAX_POINTS:
        path_length = np.concatenate([[0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
        chosen = np.unique(np.searchsorted(path_length, np.linspace(0, path_length[-1], MAX_POINTS)))
        chosen[-1] = len(x) - 1
        chosen[0] = 0
        x, y = x[chosen], y[chosen]
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


MAX_IMAGE_BYTES = 64_000
MAX_TEXT = 2_000
MAX_ENTRIES = 100
"""The most values of a feature; those left out are counted."""

IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""Image types by their first bytes."""


def worst_rows(table: PredictionsTable, task: Task, classes: Sequence[str] | None) -> list[WorstExample]:
    """The worst-scored rows, the worst first.

    Args:
        table: The evaluation's rows.
        task: The task of the model.
        classes: Names or ids of the classes; None if there are none.
    """
    return [
        WorstExample(
            loss=_loss(row, task),
            label=classes[int(row.label)] if classes else row.label,
            prediction=_prediction(row),
            predicted=_predicted(row, task, classes),
            features=features(row.serialized),
        )
        for row in table.worst
    ]


def features(serialized: bytes) -> dict[str, list[Any]]:
    """The values of a serialized tf.Example by feature.

    Numbers and text are unchanged. A small PNG or JPEG becomes `{"image": "data:…"}`, other bytes `{"bytes": length}`.
    If a feature has very many values, the first ones are followed by `{"more": count}`.
    """
    by_name = Example.FromString(serialized).features.feature
    return {name: _values(by_name[name]) for name in sorted(by_name)}


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    shown_values = [_value(value) for value in values[:MAX_ENTRIES]]
    return [*shown_values, {"more": len(values) - MAX_ENTRIES}] if len(values) > MAX_ENTRIES else shown_values


def _value(value: Any) -> Any:
    if isinstance(value, float):
        # The digits of a 32-bit float; JSON has no NaN.
        return float(f"{value:.7g}") if math.isfinite(value) else str(value)
    return _of_bytes(value) if isinstance(value, bytes) else value


def _of_bytes(value: bytes) -> Any:
    kind = next((kind for start, kind in IMAGES.items() if value.startswith(start)), None)
    if kind and len(value) < MAX_IMAGE_BYTES:
        return {"image": f"data:{kind};base64,{base64.b64encode(value).decode()}"}
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(value)}
    if kind or any(not (character.isprintable() or character.isspace()) for character in text):
        return {"bytes": len(value)}
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _loss(row: WorstRow, task: Task) -> float | None:
    label = np.array([row.label])
    if task == "binary":
        loss = measures.binary_cross_entropy(label, row.prediction)[0]
    elif task == "multiclass":
        loss = measures.multiclass_cross_entropy(label, row.prediction[None])[0]
    else:
        loss = row.error**2
    return float(loss) if math.isfinite(loss) else None


def _prediction(row: WorstRow) -> Any:
    numbers = [float(f"{value:.6g}") if math.isfinite(value) else None for value in row.prediction.tolist()]
    return numbers[0] if len(numbers) == 1 else numbers


def _predicted(row: WorstRow, task: Task, classes: Sequence[str] | None) -> str | None:
    if classes is None or not np.isfinite(row.prediction).all():
        return None
    place = int(row.prediction[0] > THRESHOLD) if task == "binary" else int(row.prediction.argmax())
    return classes[place]


def describe(table: PredictionsTable, class_names: Sequence[str] | None = None) -> Insights:
    """Computes the insights from the rows of the table.

    Args:
        table: The evaluation's rows.
        class_names: The names of the classes in the order of their ids, if they have names.
    """
    rows, sound = predictions.score_rows(table)
    classes = _class_texts(rows, class_names)
    binary = rows.task == "binary"
    bins = calibration(rows) if rows.task != "other" else []
    return Insights(
        task=rows.task,
        rows=table.rows,
        rows_kept=len(sound.labels),
        classes=classes,
        calibration=bins,
        calibration_error=calibration_error(bins) if classes and bins else None,
        confusion=confusion(rows, classes) if classes else None,
        scores=scores(rows) if binary else None,
        roc=roc(rows) if binary else None,
        precision_recall=precision_recall(rows) if binary else None,
        worst=worst_rows(table, rows.task, classes),
    )


def unseen_classes(insights: Insights) -> list[str]:
    """The classes of which the evaluation has no row; empty if that is not known, as not all rows were kept."""
    if insights.confusion is None or insights.rows_kept < insights.rows:
        return []
    rows = zip(insights.confusion.labels, insights.confusion.counts, strict=True)
    return [name for name, predicted_as in rows if not sum(predicted_as)]


def _class_texts(rows: ScoredRows, names: Sequence[str] | None) -> list[str] | None:
    if rows.task not in {"binary", "multiclass"}:
        return None
    count = rows.predictions.shape[1] if rows.task == "multiclass" else 2
    return list(names) if names and len(names) == count else [str(number) for number in range(count)]
