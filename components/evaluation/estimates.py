"""Estimates of metrics from the rows of the table, and the confidence intervals of the values that are shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from components.evaluation import areas, intervals
from components.evaluation.areas import Area
from components.evaluation.predictions import Array, PredictionsTable
from contracts.evaluation import Interval

TOLERANCE = 0.002
"""How far a value computed from the table may be from TFMA's; relative for values above 1."""

SAMPLING_ERRORS = 5
"""If the table holds a sample of the rows, how many standard errors of the sampling it may be off in addition."""


@dataclass(frozen=True)
class Sampling:
    """How the table's rows were chosen from all rows of the evaluation.

    Attributes:
        fraction: The fraction of the rows that the table holds.
        clustering: How many rows are sampled together, on average over rows, because equal rows have the same digest;
            1 if the table holds all rows.
    """

    fraction: float = 1.0
    clustering: float = 1.0

    @classmethod
    def of(cls, table: PredictionsTable) -> Sampling:
        """The sampling of a table."""
        rows = len(table.digests)
        if rows in {0, table.rows}:
            return ALL_ROWS
        _, equal = np.unique(table.digests, return_counts=True)
        return cls(rows / table.rows, float((equal.astype(np.float64) ** 2).sum() / rows))

    @property
    def shrink(self) -> float:
        """The width of an interval from all rows as a fraction of the width of that from the table's rows."""
        return math.sqrt(self.fraction)

    def tolerance(self, value: float, standard_error: float) -> float:
        """How far a value from the table may be from TFMA's value, which is of all rows."""
        sampling = SAMPLING_ERRORS * standard_error * math.sqrt(self.clustering * (1 - self.fraction))
        return TOLERANCE * max(1.0, abs(value)) + sampling


ALL_ROWS = Sampling()


@dataclass(frozen=True)
class Estimate:
    """A metric, or its difference from the baseline's, as computed from the table.

    Attributes:
        value: What TFMA would compute from the same rows.
        standard_error: The standard error of the value.
        around: Returns the interval around the value that is shown; the second argument is `Sampling.shrink`.
    """

    value: float
    standard_error: float
    around: Callable[[float, float], Interval | None]

    def interval(self, shown: float, sampling: Sampling) -> Interval | None:
        """The interval of a value that is shown; None if that value is not of the same quantity as this one."""
        if abs(self.value - shown) > sampling.tolerance(shown, self.standard_error):
            return None
        return self.around(shown, sampling.shrink)


def proportion(successes: Array, trials: Array) -> Estimate | None:
    """A share of rows; None without trials.

    Args:
        successes: Each row's weight as a success, 0 if it is not one, [n].
        trials: Each row's weight as a trial, [n].
    """
    effective = intervals.effective_trials(successes, trials)
    if not effective:
        return None
    share = float(successes.sum() / trials.sum())
    interval = intervals.wilson(share, effective)
    error = (interval.high - interval.low) / (2 * intervals.QUANTILE)
    return Estimate(share, error, lambda shown, shrink: intervals.wilson(shown, effective / shrink**2))


def bootstrapped(value: float, replicates: Array, method: str) -> Estimate | None:
    """A metric with its bootstrap replicates, [replicates]; None if it is undefined in some of them."""
    interval = intervals.percentiles(replicates, method)
    if interval is None or interval.standard_error is None or not math.isfinite(value):
        return None
    return Estimate(
        value, interval.standard_error, lambda shown, shrink: intervals.moved(interval, value, shown, shrink)
    )


def area(value: float, standard_error: float, method: str) -> Estimate:
    """An area under a curve; it has no interval if the value shown is 0 or 1."""

    def around(shown: float, shrink: float) -> Interval | None:
        inside = 0 < shown < 1
        return intervals.logit_interval(shown, standard_error * shrink, method) if inside else None

    return Estimate(value, standard_error, around)


def area_difference(value: float, ours: Area, theirs: Area, method: str) -> Estimate:
    """The difference of two models' areas."""
    error = areas.standard_error_of_difference(ours, theirs)

    def around(shown: float, shrink: float) -> Interval:
        spread = intervals.QUANTILE * error * shrink
        return intervals.make_interval(shown - spread, shown + spread, method, error * shrink)

    return Estimate(value, error, around)
