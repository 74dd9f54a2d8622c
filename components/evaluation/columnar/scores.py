"""The scores of two classes as they are, counted: for areas under curves, for which TFMA counts them in 10,000 bins.

A score's bin is its bits as a float32, which for scores of at least 0 have the same order.
"""

from __future__ import annotations

import numpy as np

from components.evaluation.columnar.sums import Histogram, Judged, MetricsDict
from components.evaluation.levels import Levels
from components.evaluation.predictions import Array

NOT_A_SCORE = 2**30
"""The bin of rows whose label is no class or whose prediction is not between 0 and 1; of scores none is as high."""

MOST_SCORES = 2**22
"""Of more different ones in all slices, neighbours count as equal: areas are then off by about one in a million."""


def _bins(judged: Judged) -> Array:
    labels, predictions = judged.numbers()
    scores = predictions.astype(np.float32) + np.float32(0)  # Without -0.
    valid = np.isin(labels, (0, 1)) & (scores >= 0) & (scores <= 1)
    return np.where(valid, scores.view(np.int32).astype(np.int64), NOT_A_SCORE)


def _columns(judged: Judged) -> list[Array]:
    labels, _ = judged.numbers()
    return [labels * judged.weights, (1 - labels) * judged.weights]


def _output(bins: Array, sums: Array) -> MetricsDict:
    if not len(bins) or bins[-1] >= NOT_A_SCORE:
        return {}
    return {"levels": Levels(bins.astype(np.int32).view(np.float32), sums[:, 0], sums[:, 1])}


SCORES = Histogram(_bins, _columns, _output, 2 * NOT_A_SCORE, MOST_SCORES)
"""Counts scores; `levels` in its output is missing where a row has no score."""
