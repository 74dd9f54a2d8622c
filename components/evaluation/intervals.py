"""Confidence intervals in closed form: Wilson's for proportions, DeLong's for the area under the ROC curve."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np

from components.evaluation.kept import Array

LEVEL = 0.95
QUANTILE = 1.959963984540054
"""The standard normal distribution's 97.5 % quantile."""


class Interval(TypedDict):
    """A confidence interval.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        level: How often such an interval holds the true value.
        method: How it was made.
    """

    low: float
    high: float
    level: float
    method: str


class Difference(Interval):
    """How much higher the candidate is than the baseline on the same rows, with its interval.

    Attributes:
        value: candidate - baseline.
    """

    value: float


def interval(low: float, high: float, method: str) -> Interval:
    """An interval at `LEVEL`."""
    return Interval(low=float(low), high=float(high), level=LEVEL, method=method)


def wilson(successes: int, trials: int) -> Interval | None:
    """The score interval of a proportion; None without trials.

    Wilson (1927), Probable inference, the law of succession, and statistical inference. JASA 22:209-212; formula as in
    Newcombe (1998), Two-sided confidence intervals for the single proportion. Statistics in Medicine 17:857-872, no. 3.
    """
    if trials == 0:
        return None
    share, square = successes / trials, QUANTILE**2
    middle = share + square / (2 * trials)
    spread = QUANTILE * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    # Rounding could leave the ends a hair outside.
    return interval(max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale), "Wilson")


def area(positive: Array, score: Array) -> float | None:
    """The area under the ROC curve, by ranks; None where all rows are of one class."""
    parts = _components(positive, score)
    return None if parts is None else float(parts[0].mean())


def delong(positive: Array, score: Array) -> Interval | None:
    """The interval of the area under the ROC curve.

    DeLong, DeLong & Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver operating
    characteristic curves. Biometrics 44:837-845; in O(n log n) by Sun & Xu (2014), Fast implementation of DeLong's
    algorithm. IEEE Signal Processing Letters 21:1389-1393.

    Args:
        positive: Whether a row is of the class that scores are high for, bool [n].
        score: float [n].

    Returns:
        None with less than two rows of a class, and where the scores of the classes do not overlap: the variance that
        is estimated then is 0.
    """
    parts = _components(positive, score)
    if parts is None:
        return None
    spread = _spread(parts[0], parts[1])
    value = parts[0].mean()
    return interval(max(0.0, value - spread), min(1.0, value + spread), "DeLong") if spread else None


def delong_difference(positive: Array, candidate: Array, baseline: Array) -> Difference | None:
    """The difference of two models' areas on the same rows; source, arguments and when there is none: see `delong`."""
    ours, theirs = _components(positive, candidate), _components(positive, baseline)
    if ours is None or theirs is None:
        return None
    spread = _spread(ours[0] - theirs[0], ours[1] - theirs[1])
    if not spread and not np.array_equal(candidate, baseline):
        return None
    value = float(ours[0].mean() - theirs[0].mean())
    return Difference(value=value, low=value - spread, high=value + spread, level=LEVEL, method="paired DeLong")


def _components(positive: Array, score: Array) -> tuple[Array, Array] | None:
    """DeLong's structural components: of each positive row the share of negative ones below it, and the other way."""
    above, below = score[positive], score[~positive]
    if len(above) < 2 or len(below) < 2:
        return None
    ranks = _midranks(np.concatenate([above, below]))
    of_above = (ranks[: len(above)] - _midranks(above)) / len(below)
    of_below = 1 - (ranks[len(above) :] - _midranks(below)) / len(above)
    return of_above, of_below


def _midranks(values: Array) -> Array:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def _spread(of_above: Array, of_below: Array) -> float:
    variance = of_above.var(ddof=1) / len(of_above) + of_below.var(ddof=1) / len(of_below)
    return QUANTILE * math.sqrt(variance)
