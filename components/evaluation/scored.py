"""Labels and predictions as the kind of task they are from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.evaluation.kept import Array, Kept

Task = Literal["binary", "multiclass", "regression", "other"]
SliceKey = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Scored:
    """Rows whose labels and predictions are numbers.

    Attributes:
        task: What they are from; `other` where that is not known: then there are no rows.
        labels: Class ids or numbers, float64 [n]; in a binary task 0 and 1.
        predictions: The chance of 1 or a number, float64 [n], or of each class, float64 [n, k].
        baseline: The baseline's, or None.
    """

    task: Task
    labels: Array
    predictions: Array
    baseline: Array | None

    def take(self, which: Array) -> Scored:
        """The rows at these positions."""
        baseline = None if self.baseline is None else self.baseline[which]
        return Scored(self.task, self.labels[which], self.predictions[which], baseline)


def score(kept: Kept) -> tuple[Scored, Kept]:
    """The rows as what they are from, and `kept` with the same rows: all whose label and predictions are numbers."""
    sound = np.isfinite(kept.labels) & np.isfinite(kept.predictions).all(axis=1)
    if kept.baseline is not None:
        sound &= np.isfinite(kept.baseline).all(axis=1)
    rows = kept.take(sound)
    baseline = None if rows.baseline is None else _shaped(rows.baseline)
    return Scored(_task(rows), rows.labels, _shaped(rows.predictions), baseline), rows


def members(kept: Kept, key: SliceKey) -> Array:
    """The positions of the rows of a slice.

    Args:
        kept: The rows.
        key: For each feature that the slice is cut by its value as text.
    """
    inside = np.ones(len(kept.labels), bool)
    for feature, value in key:
        column = kept.features.index(feature)
        wanted = [position for position, values in enumerate(kept.values[column]) if value in values]
        inside &= np.isin(kept.slices[:, column], wanted)
    return np.flatnonzero(inside)


def _task(rows: Kept) -> Task:
    width = rows.predictions.shape[1]
    if not width or not len(rows.labels):
        return "other"
    if width > 1:
        return "multiclass"
    chances = bool(((rows.predictions >= 0) & (rows.predictions <= 1)).all())
    return "binary" if chances and bool(np.isin(rows.labels, (0, 1)).all()) else "regression"


def _shaped(predictions: Array) -> Array:
    values = predictions.astype(np.float64)
    return values[:, 0] if values.shape[1] == 1 else values
