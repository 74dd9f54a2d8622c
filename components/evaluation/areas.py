"""Areas under the ROC and the precision-recall curve, with their standard errors.

Each row contributes to an area's error. The sum of the squared contributions is the variance; if the contributions of
two models are subtracted row by row, it is the variance of their paired difference. Rows have weights: numbers of rows
in a formula are replaced by Kish's effective number, (Σ w)² / Σ w² (Kish (1965), Survey sampling, section 11.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.evaluation.predictions import Array

MISRANKED_FOR_ROC = 3
MISRANKED_FOR_PRECISION_RECALL = 8
"""With fewer misranked rows (see `too_few`) the variance cannot be estimated: `make bench-intervals`."""


@dataclass(frozen=True)
class Area:
    """An area under a curve.

    Attributes:
        value: From 0 to 1.
        contributions: Each row's contribution to the error, [n]; the sum of their squares is the variance.
    """

    value: float
    contributions: Array

    @property
    def standard_error(self) -> float:
        """The standard deviation of the value over evaluations on other rows of the same kind."""
        return _root_of_squares(self.contributions)


def standard_error_of_difference(ours: Area, theirs: Area) -> float:
    """The standard error of the difference of two models' areas on the same rows."""
    return _root_of_squares(ours.contributions - theirs.contributions)


def roc(positive: Array, score: Array, weights: Array) -> Area:
    """The area under the ROC curve of rows of both classes.

    DeLong, DeLong & Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver operating
    characteristic curves. Biometrics 44:837-845: the variance is that of each positive row's share of negative rows
    below it, plus that of each negative row's share of positive rows above it.

    Args:
        positive: Whether a row is of the class for which scores should be high, bool [n].
        score: float [n].
        weights: Above 0, float [n].
    """
    level, above, below = weight_by_level(positive, score, weights)
    total_above, total_below = above.sum(), below.sum()
    # Equal scores count half.
    share_of_positive = (total_below - np.cumsum(below) + below / 2)[level] / total_below
    share_of_negative = (np.cumsum(above) - above / 2)[level] / total_above
    value = float(weights[positive] @ share_of_positive[positive] / total_above)
    contributions = np.empty(len(score))
    for rows, share, total in ((positive, share_of_positive, total_above), (~positive, share_of_negative, total_below)):
        contributions[rows] = weights[rows] / total * (share[rows] - value) * _unbiased(weights[rows])
    return Area(value, contributions)


def precision_recall(positive: Array, score: Array, weights: Array) -> Area:
    """The area under the precision-recall curve, with every score as a threshold.

    Davis & Goadrich (2006), The relationship between precision-recall and ROC curves, ICML: between two thresholds the
    true positives are interpolated, not the precision; the integral is that of tf_keras.metrics.AUC. The contributions
    are the influence function (Hampel (1974), JASA 69:383-393) of the average precision, from which the area differs by
    less than the sampling error. Let P(t) be the precision at threshold t, H(t) the number of rows and G(t) the number
    of positive rows. The contribution of a row with label y and score s, times the number of positive rows, is
    y (P(s) - area) + Σ (y - P(t)) dG(t) / H(t), where the sum is over the thresholds up to s.

    Args:
        positive: As for `roc`.
        score: As for `roc`.
        weights: As for `roc`.
    """
    level, above, below = weight_by_level(positive, score, weights)
    total, rows = above.sum(), np.cumsum(above + below)
    precision = np.cumsum(above) / rows
    average = float(above @ precision / total)
    gained = _sum_from(above / rows)[level]
    lost = _sum_from(above * precision / rows)[level]
    influence = positive * (precision[level] - average + gained) - lost
    return Area(interpolated(above, below), weights / total * influence * _unbiased(weights))


def interpolated(above: Array, below: Array) -> float:
    """The area under a precision-recall curve, from the weights of positive and other rows by falling threshold."""
    true = np.concatenate([[0.0], np.cumsum(above, dtype=np.float64)])
    every = np.concatenate([[0.0], np.cumsum(above + below, dtype=np.float64)])
    slope = above / np.diff(every)
    intercept = true[1:] - slope * every[1:]
    ratio = np.ones_like(slope)
    ratio[1:] = every[2:] / every[1:-1]
    return float((slope * (above + intercept * np.log(ratio))).sum() / true[-1])


def too_few(positive: Array, weights: Array, areas_under_roc: Sequence[float], needed: int) -> str | None:
    """Why there are too few rows for the interval of an area; None if there are enough.

    The variance of an area comes from the few rows that are ranked wrongly. If hardly any are to be expected, a sample
    often has fewer than expected: then the area is too high, the estimated variance is too small, and the interval
    misses the truth. The expected number of misranked rows is about that of the smaller class times 1 - AUC.

    Args:
        positive: As for `roc`.
        weights: As for `roc`.
        areas_under_roc: The area of the model, or those of both models.
        needed: The smallest sufficient number of misranked rows.
    """
    area = float(np.mean(areas_under_roc))
    misranked_share = min(area, 1 - area)
    sizes = {name: effective_rows(weights[rows]) for name, rows in (("positives", positive), ("negatives", ~positive))}
    name = min(sizes, key=sizes.__getitem__)
    if sizes[name] * misranked_share >= needed:
        return None
    counted = np.count_nonzero(positive if name == "positives" else ~positive)
    requirement = (
        f"this area takes about {math.ceil(needed / misranked_share):,}" if misranked_share > 0 else "none is misranked"
    )
    return f"too few {name} to tell ({counted:,} of {len(positive):,} rows; {requirement})"


def effective_rows(weights: Array) -> float:
    """Kish's effective number of rows: the number of rows of equal weight whose mean would be as precise."""
    return float(weights.sum() ** 2 / (weights @ weights)) if len(weights) else 0.0


def weight_by_level(positive: Array, score: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Each row's index among the distinct scores, highest first, and the weights of positive and other rows at each."""
    values, level = np.unique(-score, return_inverse=True)
    above, below = (np.bincount(level[rows], weights[rows], len(values)) for rows in (positive, ~positive))
    return level, above, below


def _sum_from(values: Array) -> Array:
    return np.asarray(np.cumsum(values[::-1])[::-1])


def _unbiased(weights: Array) -> float:
    """The factor from a root mean square around the mean to the estimated standard deviation; NaN for one row."""
    rows = effective_rows(weights)
    return math.sqrt(rows / (rows - 1)) if rows > 1 else math.nan


def _root_of_squares(values: Array) -> float:
    return float(np.sqrt(values @ values))
