"""Confidence intervals: Wilson's for proportions, DeLong's for the area under the ROC curve, the bootstrap for others.

A bootstrap interval says what else the evaluation could have said, had other rows of the same kind been drawn. Each row
is drawn anew as often as a Poisson distribution with the mean 1 says. Chamandy, Muralidharan, Najmi & Naidu (2012),
Estimating uncertainty for massive data streams (Google); Hanley & MacGibbon (2006), Creating non-parametric bootstrap
samples using Poisson frequencies. Computer Methods and Programs in Biomedicine 83:57-62. The ends are the percentiles
of what comes out: Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from components.evaluation.predictions import Array
from contracts.evaluation import Difference, Interval

LEVEL = 0.95
QUANTILE = 1.959963984540054
"""The standard normal distribution's 97.5 % quantile."""


def make_interval(low: float, high: float, method: str, standard_error: float | None = None) -> Interval:
    """An interval at `LEVEL`."""
    return Interval(low=float(low), high=float(high), level=LEVEL, method=method, standard_error=standard_error)


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
    return make_interval(max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale), "Wilson")


def roc_area(positive: Array, score: Array) -> float | None:
    """The area under the ROC curve, by ranks; None where all rows are of one class."""
    parts = _components(positive, score, at_least=1)
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
    error = _standard_error(*parts)
    value, spread = parts[0].mean(), QUANTILE * error
    return make_interval(max(0.0, value - spread), min(1.0, value + spread), "DeLong", error) if error else None


def delong_difference(positive: Array, candidate: Array, baseline: Array) -> Difference | None:
    """The difference of two models' areas on the same rows; source, arguments and when there is none: see `delong`."""
    ours, theirs = _components(positive, candidate), _components(positive, baseline)
    if ours is None or theirs is None:
        return None
    error = _standard_error(ours[0] - theirs[0], ours[1] - theirs[1])
    if not error and not np.array_equal(candidate, baseline):
        return None
    value, spread = float(ours[0].mean() - theirs[0].mean()), QUANTILE * error
    ends = make_interval(value - spread, value + spread, "paired DeLong", error)
    return Difference(value=value, **dict(ends))


def _components(positive: Array, score: Array, at_least: int = 2) -> tuple[Array, Array] | None:
    """DeLong's structural components: of each positive row the share of negative ones below it, and the other way."""
    above, below = score[positive], score[~positive]
    if len(above) < at_least or len(below) < at_least:
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


def _standard_error(of_above: Array, of_below: Array) -> float:
    return math.sqrt(of_above.var(ddof=1) / len(of_above) + of_below.var(ddof=1) / len(of_below))


BOOTSTRAP = "bootstrap"
SEED = 20_120_924
REPLICATES = 1000
CURVE_REPLICATES = 400
CURVE_GROUPS = 1000
CHUNK_ROWS = 256

_STEPS = 2**16


def bootstrap_sums(columns: Sequence[Array], members: Sequence[Array]) -> list[Array]:
    """Sums of columns over rows that are drawn anew; the same draws for all of them, so that differences are paired.

    Args:
        columns: For each group of rows what is summed up, float [n of the group, s].
        members: Which rows each group has, int [n of the group], increasing.

    Returns:
        For each group float64 [s, REPLICATES].
    """
    summed = [member for column, member in zip(columns, members, strict=True) if column.size]
    rows = max((int(member[-1]) + 1 for member in summed), default=0)
    generator, table = np.random.default_rng(SEED), _frequencies()
    totals = [np.zeros((column.shape[1], REPLICATES)) for column in columns]
    # In float32: what is summed up in one chunk is short enough for it.
    columns = [column.astype(np.float32) for column in columns]
    for start in range(0, rows, CHUNK_ROWS):
        size = min(CHUNK_ROWS, rows - start)
        drawn = table[_bits(generator, size * REPLICATES).reshape(size, REPLICATES)]
        for total, column, member in zip(totals, columns, members, strict=True):
            first, last = np.searchsorted(member, [start, start + size])
            if last - first == size:
                total += column[first:last].T @ drawn
            elif last > first:
                total += column[first:last].T @ drawn[member[first:last] - start]
    return totals


def percentiles(replicates: Array, method: str = BOOTSTRAP) -> Interval | None:
    """The interval of the values that came out, [replicates]; None where some are not defined."""
    if not np.isfinite(replicates).all():
        return None
    low, high = np.quantile(replicates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return make_interval(low, high, method, float(replicates.std(ddof=1)))


def precision_recall_area(positive: Array, score: Array) -> Interval | None:
    """The interval of the area under the precision-recall curve; None where all rows are of one class.

    At most `CURVE_GROUPS` groups of rows with near scores are drawn anew: a sum of Poisson counts is one, so that this
    costs no more with more rows.
    """
    if positive.all() or not positive.any():
        return None
    counts = _grouped(positive, score)
    generator = np.random.default_rng(SEED)
    drawn = generator.poisson(counts, size=(CURVE_REPLICATES, *counts.shape))
    return percentiles(_area(drawn))


def precision_recall_value(positive: Array, score: Array) -> float:
    """The area under the precision-recall curve with every score for a threshold."""
    _, position = np.unique(-score, return_inverse=True)
    return float(_area(_counts(positive, position, int(position.max()) + 1)[None])[0])


def _grouped(positive: Array, score: Array) -> Array:
    """How many positive and other rows the groups have, int [2, groups], from the highest score down."""
    _, inverse, counts = np.unique(-score, return_inverse=True, return_counts=True)
    group_of_score = (np.cumsum(counts) - 1) * CURVE_GROUPS // len(score)
    return _counts(positive, group_of_score[inverse], CURVE_GROUPS)


def _counts(positive: Array, group: Array, groups: int) -> Array:
    return np.stack([np.bincount(group[which], minlength=groups) for which in (positive, ~positive)])


def _area(counts: Array) -> Array:
    """Areas under precision-recall curves, [replicates], of counts [replicates, 2, groups].

    Davis & Goadrich (2006), The relationship between precision-recall and ROC curves, ICML: between two thresholds the
    true positives are interpolated, not the precision; the integral as tf_keras.metrics.AUC has it.
    """
    cumulated = np.cumsum(counts, axis=2, dtype=np.float64)
    cumulated = np.concatenate([np.zeros_like(cumulated[:, :, :1]), cumulated], axis=2)
    true, every = cumulated[:, 0], cumulated.sum(axis=1)
    more_true, more = np.diff(true), np.diff(every)
    slope = np.divide(more_true, more, out=np.zeros_like(more), where=more > 0)
    intercept = true[:, 1:] - slope * every[:, 1:]
    both = (every[:, :-1] > 0) & (every[:, 1:] > 0)
    ratio = np.divide(every[:, 1:], every[:, :-1], out=np.ones_like(more), where=both)
    with np.errstate(invalid="ignore", divide="ignore"):
        # A replicate may have drawn no positive row: its area is not defined.
        return np.asarray((slope * (more_true + intercept * np.log(ratio))).sum(axis=1) / true[:, -1])


def _bits(generator: np.random.Generator, count: int) -> Array:
    """So many times 16 random bits, uint16 [count]."""
    words = generator.integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
    return words.view(np.uint16)[:count]


def _frequencies() -> Array:
    """How often a row is drawn, float32 [65,536], for each value of 16 random bits."""
    chances = np.cumsum([math.exp(-1) / math.factorial(times) for times in range(12)])
    return np.searchsorted(chances, (np.arange(_STEPS) + 0.5) / _STEPS).astype(np.float32)
