"""Areas under curves against hand-computed numbers and definitions, and when there are too few rows for an interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluation_rows import scores_like_taxi

from components.evaluation import areas, intervals


def unweighted(rows: Any) -> Any:
    return np.ones(len(rows))


def test_delong_by_hand() -> None:
    # Positive rows 4 and 2, others 3 and 1: the shares of pairs in order are 1 and 1/2, and 1/2 and 1: both variances
    # are 1/8, that of the area is 1/8/2 + 1/8/2.
    positive, score = np.array([True, True, False, False]), np.array([4.0, 2.0, 3.0, 1.0])
    area = areas.roc(positive, score, unweighted(score))
    assert area.value == 0.75
    assert area.standard_error == pytest.approx(0.125**0.5)


def by_definition(positive: Any, *scores: Any) -> tuple[list[float], Any]:
    """DeLong's areas and their covariances, from all pairs."""
    above, below = [], []
    for score in scores:
        ours, theirs = score[positive][:, None], score[~positive][None]
        pairs = (ours > theirs) + 0.5 * (ours == theirs)
        above.append(pairs.mean(axis=1))
        below.append(pairs.mean(axis=0))
    covariance = np.cov(above) / positive.sum() + np.cov(below) / (~positive).sum()
    return [float(parts.mean()) for parts in above], np.atleast_2d(covariance)


def test_delong_by_definition_with_ties() -> None:
    made = scores_like_taxi(300)
    positive, scores = made.labels == 1, [np.round(each, 1) for each in (made.scores, made.worse)]
    expected, covariance = by_definition(positive, *scores)
    ours, theirs = (areas.roc(positive, each, unweighted(each)) for each in scores)
    assert (ours.value, theirs.value) == pytest.approx(expected, abs=1e-12)
    assert ours.standard_error == pytest.approx(covariance[0, 0] ** 0.5, rel=1e-9)
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert areas.standard_error_of_difference(ours, theirs) == pytest.approx(variance**0.5, rel=1e-9)


@pytest.mark.parametrize("measured", [areas.roc, areas.precision_recall])
def test_a_weight_is_worth_as_many_rows(measured: Any) -> None:
    made = scores_like_taxi(300)
    positive, score = made.labels == 1, np.round(made.scores, 2)
    weights = np.arange(300) % 3 + 1.0
    repeated = np.repeat(np.arange(300), weights.astype(int))
    weighted = measured(positive, score, weights)
    as_rows = measured(positive[repeated], score[repeated], np.ones(len(repeated)))
    assert weighted.value == pytest.approx(as_rows.value, abs=1e-12)
    # A row of the weight 3 says less than three rows do.
    assert as_rows.standard_error < weighted.standard_error
    # Kish: (1 + 2 + 3)² / (3 (1 + 4 + 9)) of the rows count.
    alike = measured(positive, score, unweighted(score))
    assert weighted.standard_error == pytest.approx(alike.standard_error * (14 / 12) ** 0.5, rel=0.1)


def test_scores_the_wrong_way_round_are_as_sure() -> None:
    positive, weights = np.arange(100) < 20, np.ones(100)
    assert areas.too_few(positive, weights, [0.15], 3) is None
    assert areas.too_few(positive, weights, [0.85], 3) is None
    # Of 20 rows with weights from 1 to 20 about 15 count: (20 · 21 / 2)² / (20 · 21 · 41 / 6).
    weights = np.where(positive, np.arange(100) + 1.0, 1.0)
    assert areas.effective_rows(weights[positive]) == pytest.approx(15.366, abs=1e-3)
    assert areas.too_few(positive, weights, [0.85], 3) == (
        "too few positives to tell (20 of 100 rows; this area takes about 20)"
    )


def test_the_area_s_interval_holds_the_true_area_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    truth = 0.95  # The chance that N(2.326, 1) is above N(0, 1).
    positive, weights = np.arange(500) < 100, np.ones(500)
    times, made = 0, 0
    for _ in range(400):
        area = areas.roc(positive, generator.normal(2.326174 * positive, 1), weights)
        if areas.too_few(positive, weights, [area.value], areas.MISRANKED_FOR_ROC) is None:
            made += 1
            interval = intervals.logit_interval(area.value, area.standard_error, "")
            times += interval.low <= truth <= interval.high
    assert made > 300
    assert 0.93 <= times / made <= 0.975


def test_the_area_under_the_precision_recall_curve_by_hand() -> None:
    # The first threshold: one true positive of one. The second adds a false positive and nothing else.
    # The third: precision from 1/2 to 2/3 while recall goes from 1/2 to 1; interpolated with slope 1 and intercept -1:
    # 1/2 + (1 - ln(3/2)) / 2.
    positive = np.array([True, False, True])
    area = areas.precision_recall(positive, np.array([0.9, 0.8, 0.7]), np.ones(3))
    assert area.value == pytest.approx(0.5 + (1 - np.log(1.5)) / 2)


def test_the_area_under_the_precision_recall_curve_keeps_ties_together() -> None:
    positive = np.array([True, False] * 3000)
    # One threshold: every row is predicted positive, and half of them are, give or take the error of that share.
    area = areas.precision_recall(positive, np.full(6000, 0.5), np.ones(6000))
    assert area.value == pytest.approx(0.5)
    assert area.standard_error == pytest.approx(0.5 / 6000**0.5, rel=1e-3)


def test_the_error_of_the_precision_recall_area_is_that_of_rows_drawn_anew() -> None:
    made = scores_like_taxi(1000)
    positive, score = made.labels == 1, made.scores
    generator = np.random.default_rng(0)
    drawn = [generator.integers(0, 1000, 1000) for _ in range(200)]
    values = [areas.precision_recall(positive[rows], score[rows], np.ones(1000)).value for rows in drawn]
    area = areas.precision_recall(positive, score, np.ones(1000))
    assert area.standard_error == pytest.approx(np.std(values), rel=0.1)
