"""Confidence intervals against published and hand-computed numbers, and how often they hold the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluation_rows import kept_of, scores_like_taxi

from components.evaluation import confidence, intervals
from components.evaluation.predictions import PredictionsTable

# Newcombe (1998), Table I, method 3.
NEWCOMBE = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]


@pytest.mark.parametrize(("successes", "trials", "low", "high"), NEWCOMBE)
def test_wilson_as_published(successes: int, trials: int, low: float, high: float) -> None:
    found = intervals.wilson(successes, trials)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert (found.level, found.method) == (0.95, "Wilson")


def test_wilson_without_trials_and_with_nothing_but_successes() -> None:
    assert intervals.wilson(0, 0) is None
    found = intervals.wilson(20, 20)
    assert found is not None
    assert (round(found.low, 4), found.high) == (0.8389, 1.0)


def test_delong_by_hand() -> None:
    # Positive rows 4 and 2, others 3 and 1: the shares of pairs in order are 1 and 1/2, and 1/2 and 1: both variances
    # are 1/8, that of the area is 1/8/2 + 1/8/2.
    positive, score = np.array([True, True, False, False]), np.array([4.0, 2.0, 3.0, 1.0])
    assert intervals.roc_area(positive, score) == 0.75
    found = intervals.delong(positive, score)
    assert found is not None
    assert found.low == pytest.approx(0.75 - 1.959964 * 0.125**0.5, abs=1e-6)
    assert (found.high, found.method) == (1.0, "DeLong")


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
    positive, ours, theirs = made.labels == 1, np.round(made.scores, 1), np.round(made.worse, 1)
    areas, covariance = by_definition(positive, ours, theirs)
    found = intervals.delong(positive, ours)
    assert found is not None
    assert intervals.roc_area(positive, ours) == pytest.approx(areas[0], abs=1e-12)
    assert (found.high - found.low) / 2 == pytest.approx(1.959964 * covariance[0, 0] ** 0.5, rel=1e-6)
    difference = intervals.delong_difference(positive, ours, theirs)
    assert difference is not None
    spread = 1.959964 * (covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]) ** 0.5
    assert difference.value == pytest.approx(areas[0] - areas[1], abs=1e-12)
    assert difference.high - difference.value == pytest.approx(spread, rel=1e-6)
    assert difference.standard_error == pytest.approx(spread / 1.959964, rel=1e-6)
    assert difference.method == "paired DeLong"


@pytest.mark.parametrize(
    ("labels", "scores"),
    [([1, 0, 0], [0.9, 0.1, 0.2]), ([1, 1, 1], [0.9, 0.1, 0.2]), ([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1])],
    ids=["one row of a class", "one class", "nothing overlaps"],
)
def test_an_area_without_an_interval(labels: list[int], scores: list[float]) -> None:
    assert intervals.delong(np.array(labels) == 1, np.array(scores)) is None


def held(found: Any, truth: float) -> bool:
    assert found is not None
    return bool(found.low <= truth <= found.high)


def test_delong_holds_the_true_area_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    truth = 0.76025  # The chance that N(1, 1) is above N(0, 1): the normal distribution's at 1 / sqrt(2).
    positive = np.arange(200) < 80
    times = sum(held(intervals.delong(positive, generator.normal(positive, 1)), truth) for _ in range(400))
    assert 0.92 <= times / 400 <= 0.98


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


def test_the_area_under_the_precision_recall_curve_by_hand() -> None:
    # The first threshold: one true positive of one. The second adds a false positive and nothing else.
    # The third: precision from 1/2 to 2/3 while recall goes from 1/2 to 1; interpolated with slope 1 and intercept -1:
    # 1/2 + (1 - ln(3/2)) / 2.
    positive = np.array([True, False, True])
    expected = 0.5 + (1 - np.log(1.5)) / 2
    assert intervals.precision_recall_value(positive, np.array([0.9, 0.8, 0.7])) == pytest.approx(expected)
    assert intervals.precision_recall_area(np.array([True, True]), np.array([0.9, 0.8])) is None


def test_the_area_under_the_precision_recall_curve_keeps_ties_together() -> None:
    positive = np.array([True, False] * 3000)
    # One threshold: every row is predicted positive, and half of them are.
    assert intervals.precision_recall_value(positive, np.full(6000, 0.5)) == pytest.approx(0.5)


MADE = scores_like_taxi(3000)
NAMES = ["AUC", "BinaryAccuracy", "Precision", "Calibration", "F1Score", "AUCPrecisionRecall", "Rouge"]


def sure(kept: PredictionsTable, names: list[str] = NAMES) -> confidence.Confidence:
    [found] = confidence.measure_confidence(kept, names, [()])
    return found


def test_each_metric_names_its_method() -> None:
    methods = {name: found.method for name, found in sure(kept_of(MADE.labels, MADE.scores)).intervals.items()}
    assert methods == {
        "AUC": "DeLong",
        "BinaryAccuracy": "Wilson",
        "Precision": "Wilson",
        "Calibration": "bootstrap",
        "F1Score": "bootstrap",
        "AUCPrecisionRecall": "bootstrap",
    }


def test_proportions_count_the_right_rows() -> None:
    labels, scores = [1, 1, 1, 0, 0], [0.9, 0.5, 0.6, 0.7, 0.1]
    found = sure(kept_of(labels, scores), ["Precision", "Recall", "Specificity", "BinaryAccuracy"])
    # 0.5 is not above the threshold.
    assert found.values == pytest.approx(
        {"Precision": 2 / 3, "Recall": 2 / 3, "Specificity": 0.5, "BinaryAccuracy": 0.6}
    )
    assert found.intervals["Precision"] == intervals.wilson(2, 3)
    assert found.intervals["BinaryAccuracy"] == intervals.wilson(3, 5)


def test_differences_are_paired() -> None:
    found = sure(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse)).differences
    assert set(found) == {"AUC", "BinaryAccuracy", "Precision", "Calibration", "F1Score"}
    ours, theirs = (sure(kept_of(MADE.labels, scores)) for scores in (MADE.scores, MADE.worse))
    for name, difference in found.items():
        assert difference.value == pytest.approx(ours.values[name] - theirs.values[name], abs=1e-9)
        assert difference.low < difference.value < difference.high
        width = difference.high - difference.low
        # Most of what rows have by chance they have for both models.
        assert width < 0.8 * (ours.intervals[name].high - ours.intervals[name].low)
    assert found["AUC"].method == "paired DeLong"
    assert found["F1Score"].method == "paired bootstrap"


def test_the_standard_error_of_a_paired_difference() -> None:
    difference = sure(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse)).differences["BinaryAccuracy"]
    # Of n rows those that one model alone has right, by McNemar (1947).
    right, wrong = (((made > 0.5) == MADE.labels) for made in (MADE.scores, MADE.worse))
    gained, lost = (right & ~wrong).mean(), (~right & wrong).mean()
    assert difference.value == pytest.approx(gained - lost)
    expected = ((gained + lost - (gained - lost) ** 2) / len(MADE.labels)) ** 0.5
    assert difference.standard_error == pytest.approx(expected, rel=0.06)


def test_a_model_does_not_differ_from_itself() -> None:
    found = sure(kept_of(MADE.labels, MADE.scores, baseline=MADE.scores)).differences
    assert {(each.low, each.value, each.high) for each in found.values()} == {(0.0, 0.0, 0.0)}


def test_two_models_that_make_no_mistake_are_not_said_to_be_equal() -> None:
    positive = np.array([True, True, False, False])
    ours, theirs = np.array([0.9, 0.8, 0.2, 0.1]), np.array([0.7, 0.6, 0.5, 0.4])
    assert intervals.delong_difference(positive, ours, theirs) is None


def test_slices_have_intervals_of_their_own_rows() -> None:
    side = np.where(np.arange(3000) % 3 == 0, "a", "b")
    features = {"side": np.array([[word.encode()] for word in side], object)}
    kept = kept_of(MADE.labels, MADE.scores, baseline=MADE.worse, features=features)
    _, of_a, of_none = confidence.measure_confidence(kept, NAMES, [(), [("side", "a")], [("side", "c")]])
    alone = sure(kept_of(*(column[side == "a"] for column in (MADE.labels, MADE.scores, MADE.worse))))
    assert set(of_a.differences) == set(alone.differences)
    assert of_a.differences["AUC"] == alone.differences["AUC"]
    ours, theirs = (made.differences["BinaryAccuracy"] for made in (of_a, alone))
    assert ours.value == theirs.value
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.1)
    assert of_a.intervals["AUC"] == alone.intervals["AUC"]
    assert of_a.intervals["BinaryAccuracy"] == alone.intervals["BinaryAccuracy"]
    assert of_a.intervals["Calibration"].low == pytest.approx(alone.intervals["Calibration"].low, rel=0.05)
    assert (of_none.intervals, of_none.differences) == ({}, {})


def test_an_interval_of_another_quantity_is_not_given() -> None:
    found = sure(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse))
    value = found.values["BinaryAccuracy"]
    assert found.interval("BinaryAccuracy", value) == found.intervals["BinaryAccuracy"]
    assert found.interval("BinaryAccuracy", value + 0.1) is None
    assert found.interval("BinaryAccuracy", None) is None
    assert found.interval("Rouge", 0.5) is None
    apart = found.differences["AUC"].value
    assert found.difference("AUC", 0.9, 0.9 - apart) == found.differences["AUC"]
    assert found.difference("AUC", 0.9, None) is None
    assert found.difference("AUC", 0.9, 0.5) is None


def test_rows_that_are_no_numbers_are_left_out() -> None:
    scores = np.append(MADE.scores[:500], np.nan)
    labels = np.append(MADE.labels[:500], 1)
    found, without = sure(kept_of(labels, scores)), sure(kept_of(MADE.labels[:500], MADE.scores[:500]))
    assert (found.values, found.intervals) == (without.values, without.intervals)
    # Of what TFMA makes of such a row nothing is known: its own areas are shown.
    assert found.areas == {}
