"""What measured differences show: one-sided tests, many at once (Holm) and one after the other (looks).

Differences are assumed to be normal with a known standard error, which is nearly true of paired DeLong and bootstrap
estimates from a few hundred rows or more. Needs neither TensorFlow nor NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

from components.evaluation.settings import UNIT_INTERVAL_METRICS
from contracts.evaluation import Difference, Interval

ERROR_RATE = 0.05
"""How often, over all looks at one evaluation split, a model may pass that is worse than allowed; and how often one may
be refused for a slice or a gap that is within its bounds."""


def p_value(margin: float, standard_error: float) -> float:
    """The probability of an estimate at least this far on the good side of a bound when the truth is on the bound.

    Args:
        margin: The estimate minus the bound.
        standard_error: The estimate's standard error; 0 if it is certain.
    """
    if standard_error == 0:
        return 0.0 if margin >= 0 else 1.0
    return math.erfc(margin / standard_error / math.sqrt(2)) / 2


def quantile(level: float) -> float:
    """The distance from the estimate to the end of a one-sided interval at 1 - `level`, in standard errors."""
    return -NormalDist().inv_cdf(level)


def gain_of(difference: float, direction: Literal["higher_is_better", "lower_is_better"]) -> float:
    """A difference as how much better the candidate is."""
    return difference if direction == "higher_is_better" else -difference


def standard_error_of(interval: Interval | None) -> float | None:
    """The standard error of an estimate, computed from the interval's width if the method gives none."""
    if interval is None or interval.standard_error is not None:
        return interval.standard_error if interval else None
    return (interval.high - interval.low) / 2 / quantile((1 - interval.level) / 2)


def standard_error_of_difference(metric: str, difference: Difference | None, rows: int) -> float | None:
    """The standard error of a difference.

    If two models differ on few rows, they would seem to be equal with certainty. So for shares of rows, the models are
    assumed to differ on one more row, as Agresti & Min (2005), Simple improved confidence intervals for comparing
    matched proportions, Statistics in Medicine 24:729-740, add half a row to each of four counts.

    Args:
        metric: The metric.
        difference: The difference; None if it was not computed.
        rows: The number of rows that it was measured on.
    """
    error = standard_error_of(difference)
    if error is None or difference is None or metric not in UNIT_INTERVAL_METRICS or "DeLong" in difference.method:
        return error
    return math.hypot(error, 1 / rows)


def rows_needed(rows: int, standard_error: float, margin: float, level: float) -> int:
    """About how many rows would show that the truth is on the good side of a bound, if the estimate is the truth.

    Args:
        rows: The number of rows that were measured.
        standard_error: The estimate's standard error on these.
        margin: The estimate minus the bound, more than 0.
        level: The level of the test.
    """
    return math.ceil(rows * (quantile(level) * standard_error / margin) ** 2)


def holm(p_values: Sequence[float], level: float = ERROR_RATE) -> list[bool]:
    """Which of several hypotheses are rejected, if the chance of any wrong rejection is to be at most `level`.

    Holm (1979), A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6:65-70.
    """
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(order):
        if p_values[position] > level / (len(order) - rank):
            break
        rejected[position] = True
    return rejected


def share_of_look(look: int) -> float:
    """The part of `ERROR_RATE` for the first, second, … look at the same rows; all parts add up to it.

    The parts fall with the square of the look, so that the first is the largest and the number of looks is unlimited.
    The normal distribution has thin tails: at look 100 an interval is only 2.4 times as wide as at look 1.
    """
    return ERROR_RATE * 6 / (math.pi * look) ** 2


def look_level(earlier: Sequence[bool]) -> float:
    """The level of the next look at the same rows.

    A look that showed its model to be good enough passes its level on to the next: either nothing was passed wrongly,
    or the error has been made already. Wiens (2003), A fixed sequence Bonferroni procedure for testing multiple
    endpoints. Pharmaceutical Statistics 2:211-215; as "online fallback" in Tian & Ramdas (2021), Online control of the
    familywise error rate. Statistical Methods in Medical Research 30:976-993, who show that it holds under any
    dependence.

    Args:
        earlier: For each earlier look, in order, whether it showed its model to be good enough.
    """
    handed_on = 0.0
    for look, passed in enumerate(earlier, start=1):
        handed_on = handed_on + share_of_look(look) if passed else 0.0
    return handed_on + share_of_look(len(earlier) + 1)
