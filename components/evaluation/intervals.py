"""Confidence intervals: Wilson's for proportions, on the logit scale for areas under curves, the bootstrap for others.

A bootstrap interval shows how the evaluation might have turned out with other rows of the same kind. The number of
times that each row is drawn has a Poisson distribution with mean 1: Chamandy, Muralidharan, Najmi & Naidu (2012),
Estimating uncertainty for massive data streams (Google); Hanley & MacGibbon (2006), Creating non-parametric bootstrap
samples using Poisson frequencies. Computer Methods and Programs in Biomedicine 83:57-62. The ends are the percentiles
of the results: Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from components.evaluation.predictions import Array
from contracts.evaluation import Interval

LEVEL = 0.95
QUANTILE = 1.959963984540054
"""The standard normal distribution's 97.5 % quantile."""


def make_interval(low: float, high: float, method: str, standard_error: float | None = None) -> Interval:
    """An interval at `LEVEL`."""
    return Interval(low=float(low), high=float(high), level=LEVEL, method=method, standard_error=standard_error)


def wilson(share: float, trials: float) -> Interval:
    """The score interval of a proportion.

    Wilson (1927), Probable inference, the law of succession, and statistical inference. JASA 22:209-212; formula as in
    Newcombe (1998), Two-sided confidence intervals for the single proportion. Statistics in Medicine 17:857-872, no. 3.

    Args:
        share: Successes divided by trials.
        trials: The number of trials, more than 0; see `effective_trials` for rows with weights.
    """
    square = QUANTILE**2
    middle = share + square / (2 * trials)
    spread = QUANTILE * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    # Rounding could move the ends slightly beyond the share, 0 or 1.
    low, high = (middle - spread) / scale, (middle + spread) / scale
    return make_interval(min(share, max(0.0, low)), max(share, min(1.0, high)), "Wilson")


def effective_trials(successes: Array, trials: Array) -> float:
    """The number of trials of equal weight whose proportion would be as precise, for Wilson's interval.

    Their variance equals the linearized variance of the ratio: Korn & Graubard (1998), Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data. Survey Methodology 24:193-201.
    It is at most Kish's number, since the variance may be small by chance.

    Args:
        successes: Each row's weight as a success, 0 if it is not one, [n].
        trials: Each row's weight as a trial, [n].
    """
    total = trials.sum()
    if not total:
        return 0.0
    kish = float(total**2 / (trials @ trials))
    share = successes.sum() / total
    errors = (successes - share * trials) / total
    variance = float(errors @ errors)
    return min(kish, share * (1 - share) / variance) if variance else kish


def logit_interval(value: float, standard_error: float, method: str) -> Interval:
    """The interval of something between 0 and 1, symmetrical on the scale of log(value / (1 - value)).

    For areas under curves: Qin & Hotilovac (2008), Comparison of non-parametric confidence intervals for the area under
    the ROC curve of a continuous-scale diagnostic test. Statistical Methods in Medical Research 17:207-221.

    Args:
        value: Greater than 0 and less than 1.
        standard_error: The standard error of the value.
        method: How the standard error was estimated.
    """
    middle = math.log(value / (1 - value))
    spread = QUANTILE * standard_error / (value * (1 - value))
    low, high = ((1 + math.tanh(end / 2)) / 2 for end in (middle - spread, middle + spread))
    return make_interval(low, high, f"{method}, logit scale", standard_error)


BOOTSTRAP = "bootstrap"
SEED = 20_120_924
REPLICATES = 1000
CHUNK_ROWS = 256

_STEPS = 2**16


def bootstrap_sums(columns: Sequence[Array], members: Sequence[Array]) -> list[Array]:
    """Sums of columns over resampled rows, with the same draws for all groups, so that differences are paired.

    Args:
        columns: For each group of rows, the columns to sum up, float [n of the group, s].
        members: For each group, its rows, int [n of the group], increasing.

    Returns:
        For each group, the sums, float64 [s, REPLICATES].
    """
    summed = [member for column, member in zip(columns, members, strict=True) if column.size]
    rows = max((int(member[-1]) + 1 for member in summed), default=0)
    generator, table = np.random.default_rng(SEED), _frequencies()
    totals = [np.zeros((column.shape[1], REPLICATES)) for column in columns]
    # float32 is precise enough for the sums of one chunk.
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
    """The interval from the values of the replicates, [replicates]; None if some are not defined."""
    if not np.isfinite(replicates).all():
        return None
    low, high = np.quantile(replicates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return make_interval(low, high, method, float(replicates.std(ddof=1)))


def moved(interval: Interval, value: float, shown: float, shrink: float) -> Interval:
    """An interval moved to a value that was computed from more rows.

    Args:
        interval: The interval of `value`.
        value: The value from the table.
        shown: The value that the new interval is of; it always contains this.
        shrink: The width of the new interval as a fraction of the old one's.
    """
    low, high = (shown + (end - value) * shrink for end in (interval.low, interval.high))
    error = None if interval.standard_error is None else interval.standard_error * shrink
    return make_interval(min(low, shown), max(high, shown), interval.method, error)


def _bits(generator: np.random.Generator, count: int) -> Array:
    """16 random bits each, uint16 [count]."""
    words = generator.integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
    return words.view(np.uint16)[:count]


def _frequencies() -> Array:
    """How often a row is drawn for each value of 16 random bits, float32 [65,536]."""
    chances = np.cumsum([math.exp(-1) / math.factorial(times) for times in range(12)])
    return np.searchsorted(chances, (np.arange(_STEPS) + 0.5) / _STEPS).astype(np.float32)
