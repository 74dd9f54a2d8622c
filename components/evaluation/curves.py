"""Calibration, confusion and the curves of an evaluation, as plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.evaluation.kept import Array
from components.evaluation.measures import THRESHOLD
from components.evaluation.scored import Scored

CALIBRATION_BINS = 10
SCORE_BINS = 20
MAX_POINTS = 200
MAX_CLASSES = 100
"""With more classes there is no confusion matrix: it would be megabytes that nobody can look at."""


def calibration(rows: Scored) -> list[dict[str, Any]]:
    """Predictions against what came true, in bins; those without rows are left out.

    In a binary task bins of the score, of equal width; with several classes the same of the top score against whether
    that class was right; for numbers groups of as many rows each, by prediction.
    """
    labels, predictions = _to_calibrate(rows)
    if rows.task == "regression":
        edges = np.unique(np.quantile(predictions, np.linspace(0, 1, CALIBRATION_BINS + 1)))
    else:
        edges = np.linspace(0, 1, CALIBRATION_BINS + 1)
    # A single value is a bin without a width.
    edges = edges if len(edges) > 1 else np.repeat(edges, 2)
    places = np.clip(np.searchsorted(edges, predictions, side="right") - 1, 0, len(edges) - 2)
    return [
        {
            "low": float(edges[place]),
            "high": float(edges[place + 1]),
            "rows": int(inside.sum()),
            "mean_prediction": float(predictions[inside].mean()),
            "mean_label": float(labels[inside].mean()),
        }
        for place in range(len(edges) - 1)
        if (inside := places == place).any()
    ]


def calibration_error(bins: Sequence[dict[str, Any]]) -> float:
    """The expected calibration error: how far predictions are from what came true, averaged over rows.

    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning, AAAI; for the
    top score of several classes Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML.
    """
    rows = sum(entry["rows"] for entry in bins)
    return float(sum(entry["rows"] * abs(entry["mean_prediction"] - entry["mean_label"]) for entry in bins) / rows)


def confusion(rows: Scored, classes: Sequence[str]) -> dict[str, Any] | None:
    """How many rows of each class (rows) were predicted to be of which (columns); None with too many classes."""
    size = len(classes)
    if size > MAX_CLASSES:
        return None
    places = rows.labels.astype(np.int64) * size + predicted(rows)
    counts = np.bincount(places, minlength=size * size).reshape(size, size)
    threshold = THRESHOLD if rows.task == "binary" else None
    return {"labels": list(classes), "counts": counts.tolist(), "threshold": threshold}


def predicted(rows: Scored) -> Array:
    """The class that is predicted, int64 [n]."""
    if rows.task == "binary":
        return np.asarray(rows.predictions > THRESHOLD, np.int64)
    return np.asarray(rows.predictions.argmax(axis=1), np.int64)


def scores(rows: Scored) -> list[dict[str, Any]]:
    """A histogram of the scores of each true class, [low, high, count] a bin."""
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    found = []
    for label in (0, 1):
        counts = np.histogram(rows.predictions[rows.labels == label], edges)[0]
        bins = [
            [float(low), float(high), int(count)]
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        found.append({"label": str(label), "bins": bins})
    return found


def roc(rows: Scored) -> list[list[float]] | None:
    """[false positive rate, true positive rate] at up to 200 thresholds, up from (0, 0); None for one class only."""
    true, false = _cumulated(rows)
    if not true[-1] or not false[-1]:
        return None
    return _thinned(false / false[-1], true / true[-1])


def precision_recall(rows: Scored) -> list[list[float]] | None:
    """[recall, precision] at up to 200 thresholds, from the highest score down; None without positive rows."""
    true, false = _cumulated(rows)
    if not true[-1]:
        return None
    true, false = true[1:], false[1:]
    return _thinned(true / true[-1], true / (true + false))


def _to_calibrate(rows: Scored) -> tuple[Array, Array]:
    if rows.task != "multiclass":
        return rows.labels, rows.predictions
    return (predicted(rows) == rows.labels).astype(np.float64), rows.predictions.max(axis=1)


def _cumulated(rows: Scored) -> tuple[Array, Array]:
    """True and false positives at each score as the threshold, from above the highest down, int [thresholds + 1]."""
    order = np.argsort(-rows.predictions, kind="stable")
    score, positive = rows.predictions[order], rows.labels[order] == 1
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    true, false = (np.concatenate([[0], np.cumsum(which)[last]]) for which in (positive, ~positive))
    return true, false


def _thinned(x: Array, y: Array) -> list[list[float]]:
    """Points of a curve, at most `MAX_POINTS`, about as far from each other along it; the ends among them."""
    if len(x) > MAX_POINTS:
        way = np.concatenate([[0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
        few = np.unique(np.searchsorted(way, np.linspace(0, way[-1], MAX_POINTS)))
        few[-1] = len(x) - 1
        few[0] = 0
        x, y = x[few], y[few]
    return [[float(a), float(b)] for a, b in zip(x, y, strict=True)]
