"""Confidence intervals against published and hand-computed numbers, and how often they hold the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.evaluation import intervals

# Newcombe (1998), Table I, method 3.
NEWCOMBE = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]


@pytest.mark.parametrize(("successes", "trials", "low", "high"), NEWCOMBE)
def test_wilson_as_published(successes: int, trials: int, low: float, high: float) -> None:
    interval = intervals.wilson(successes / trials, trials)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert (interval.level, interval.method) == (0.95, "Wilson")


def test_wilson_with_nothing_but_successes() -> None:
    interval = intervals.wilson(1, 20)
    assert (round(interval.low, 4), interval.high) == (0.8389, 1.0)


def test_the_logit_interval_by_hand() -> None:
    # The logit of 0.8 is ln 4; its standard error 0.04 / 0.16.
    interval = intervals.logit_interval(0.8, 0.04, "DeLong")
    ends = [4 * np.exp(sign * 1.959964 * 0.25) for sign in (-1, 1)]
    assert (interval.low, interval.high) == pytest.approx([end / (1 + end) for end in ends], abs=1e-7)
    assert (interval.method, interval.standard_error) == ("DeLong, logit scale", 0.04)


def held(found: Any, truth: float) -> bool:
    assert found is not None
    return bool(found.low <= truth <= found.high)


def test_the_bootstrap_holds_the_true_ratio_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "REPLICATES", 400)
    generator = np.random.default_rng(0)
    times = 0
    for _ in range(300):
        columns = np.stack([generator.exponential(2, 200), generator.exponential(1, 200)], axis=1)
        [drawn] = intervals.bootstrap_sums([columns], [np.arange(200)])
        times += held(intervals.percentiles(drawn[0] / drawn[1]), 2)
    assert 0.91 <= times / 300 <= 0.98


def test_rows_are_drawn_as_often_as_a_poisson_distribution_says() -> None:
    rows = 10_000
    [drawn] = intervals.bootstrap_sums([np.ones((rows, 1))], [np.arange(rows)])
    assert drawn.shape == (1, intervals.REPLICATES)
    # The sum of n draws has the mean n and the standard deviation sqrt(n).
    assert drawn.mean() == pytest.approx(rows, abs=4 * 100 / intervals.REPLICATES**0.5)
    assert drawn.std() == pytest.approx(100, rel=0.1)
    # The same each time.
    assert np.array_equal(drawn, intervals.bootstrap_sums([np.ones((rows, 1))], [np.arange(rows)])[0])


def test_groups_share_their_draws() -> None:
    members = [np.arange(9000), np.arange(0, 9000, 3), np.arange(0)]
    every, third, none = intervals.bootstrap_sums(
        [(np.arange(9000) % 3 == 0)[:, None], np.ones((3000, 1)), np.ones((0, 1))], members
    )
    assert np.array_equal(every, third)
    assert not none.any()


def test_what_is_not_always_defined_has_no_interval() -> None:
    assert intervals.percentiles(np.array([1.0, np.nan])) is None
    assert intervals.percentiles(np.array([1.0, np.inf])) is None


def test_rows_of_equal_weight_are_as_many_trials() -> None:
    successes, trials = np.array([1.0, 0.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    assert intervals.effective_trials(successes, trials) == pytest.approx(4)
    assert intervals.effective_trials(7 * successes, 7 * trials) == pytest.approx(4)
    assert intervals.effective_trials(0 * successes, 0 * trials) == 0


def test_rows_of_unequal_weight_are_fewer_trials() -> None:
    trials = np.array([3.0, 1.0, 1.0, 1.0])
    # Kish: 6² / (9 + 1 + 1 + 1), where the ratio's own variance says no more: no success, or light ones alone.
    assert intervals.effective_trials(np.zeros(4), trials) == pytest.approx(3)
    # The share is 3/6, the errors 3/2, 1/2, 1/2 and 1/2 of 6: their squares add up to 1/12, and 1/4 over that is 3.
    assert intervals.effective_trials(np.array([3.0, 0, 0, 0]), trials) == pytest.approx(3)
    # The share is 1/6, the errors 1/2, 5/6, 1/6 and 1/6: 1 over 36, and 5/36 over that is 5, more than Kish's 3.
    assert intervals.effective_trials(np.array([0, 1.0, 0, 0]), trials) == pytest.approx(3)


def test_an_interval_is_moved_and_made_narrower() -> None:
    interval = intervals.make_interval(1.0, 1.8, "bootstrap", 0.2)
    moved = intervals.moved(interval, 1.2, 3.0, 0.5)
    assert (moved.low, moved.high, moved.standard_error) == pytest.approx((2.9, 3.3, 0.1))
    # Percentiles of a biased metric may miss its value; an interval never does.
    assert intervals.moved(interval, 0.9, 0.9, 1.0).low == 0.9
