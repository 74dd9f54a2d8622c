"""Confidence intervals of metrics: their methods, samples of the rows, weights and slices."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_rows import kept_of, scores_like_taxi

from components.evaluation import confidence, estimates, intervals, predictions
from components.evaluation.confidence import Confidence
from components.evaluation.levels import Levels
from components.evaluation.predictions import PredictionsTable
from contracts.evaluation import Difference, Interval

MADE = scores_like_taxi(3000)
NAMES = ["AUC", "BinaryAccuracy", "Precision", "Calibration", "F1Score", "AUCPrecisionRecall", "Rouge"]


def measured(kept: PredictionsTable, names: list[str] = NAMES) -> Confidence:
    [known] = confidence.measure_confidence(kept, names, [()])
    return known


def values(known: Confidence) -> dict[str, float]:
    return {name: estimate.value for name, estimate in known.estimates.items()}


def interval_of(known: Confidence, name: str) -> Interval:
    """That of the value computed here."""
    interval = known.interval(name, known.estimates[name].value)
    assert interval is not None
    return interval


def difference_of(known: Confidence, name: str) -> Difference:
    difference = known.difference(name, known.differences[name].value, 0.0)
    assert difference is not None
    return difference


def test_each_metric_names_its_method() -> None:
    known = measured(kept_of(MADE.labels, MADE.scores))
    methods = {name: interval_of(known, name).method for name in known.estimates}
    assert methods == {
        "AUC": "DeLong, logit scale",
        "BinaryAccuracy": "Wilson",
        "Precision": "Wilson",
        "Calibration": "bootstrap",
        "F1Score": "bootstrap",
        "AUCPrecisionRecall": "linearized, logit scale",
    }


def test_proportions_count_the_right_rows() -> None:
    labels, scores = [1, 1, 1, 0, 0], [0.9, 0.5, 0.6, 0.7, 0.1]
    known = measured(kept_of(labels, scores), ["Precision", "Recall", "Specificity", "BinaryAccuracy"])
    # 0.5 is not above the threshold.
    assert values(known) == pytest.approx(
        {"Precision": 2 / 3, "Recall": 2 / 3, "Specificity": 0.5, "BinaryAccuracy": 0.6}
    )
    for name, share, trials in (("Precision", 2 / 3, 3), ("BinaryAccuracy", 0.6, 5)):
        interval, expected = interval_of(known, name), intervals.wilson(share, trials)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_differences_are_paired() -> None:
    known = measured(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse))
    assert set(known.differences) == set(NAMES) - {"Rouge"}
    ours, theirs = (measured(kept_of(MADE.labels, scores)) for scores in (MADE.scores, MADE.worse))
    for name in known.differences:
        difference, interval = difference_of(known, name), interval_of(ours, name)
        assert difference.value == pytest.approx(values(ours)[name] - values(theirs)[name], abs=1e-9)
        assert difference.low < difference.value < difference.high
        # Most of what rows have by chance they have for both models.
        assert difference.high - difference.low < 0.8 * (interval.high - interval.low)
        assert difference.high - difference.low == pytest.approx(2 * 1.96 * (difference.standard_error or 0), rel=0.1)
    assert difference_of(known, "AUC").method == "paired DeLong"
    assert difference_of(known, "AUCPrecisionRecall").method == "paired linearized"
    assert difference_of(known, "F1Score").method == "paired bootstrap"


def test_the_standard_error_of_a_paired_difference() -> None:
    difference = measured(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse)).differences["BinaryAccuracy"]
    # Of n rows those that one model alone has right, by McNemar (1947).
    right, wrong = (((made > 0.5) == MADE.labels) for made in (MADE.scores, MADE.worse))
    gained, lost = (right & ~wrong).mean(), (~right & wrong).mean()
    assert difference.value == pytest.approx(gained - lost)
    expected = ((gained + lost - (gained - lost) ** 2) / len(MADE.labels)) ** 0.5
    assert difference.standard_error == pytest.approx(expected, rel=0.06)


def test_a_model_does_not_differ_from_itself() -> None:
    known = measured(kept_of(MADE.labels, MADE.scores, baseline=MADE.scores))
    each = [difference_of(known, name) for name in known.differences]
    assert {(one.low, one.value, one.high, one.standard_error) for one in each} == {(0.0, 0.0, 0.0, 0.0)}


def test_two_models_that_make_no_mistake_are_not_said_to_be_equal() -> None:
    known = measured(kept_of([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1], baseline=[0.7, 0.6, 0.5, 0.4]), ["AUC"])
    assert (known.differences, set(known.reasons)) == ({}, {"AUC"})


def test_slices_have_intervals_of_their_own_rows() -> None:
    side = np.where(np.arange(3000) % 3 == 0, "a", "b")
    features = {"side": np.array([[word.encode()] for word in side], object)}
    kept = kept_of(MADE.labels, MADE.scores, baseline=MADE.worse, features=features)
    _, of_a, of_none = confidence.measure_confidence(kept, NAMES, [(), [("side", "a")], [("side", "c")]])
    alone = measured(kept_of(*(column[side == "a"] for column in (MADE.labels, MADE.scores, MADE.worse))))
    assert set(of_a.differences) == set(alone.differences)
    assert difference_of(of_a, "AUC") == difference_of(alone, "AUC")
    ours, theirs = (made.differences["BinaryAccuracy"] for made in (of_a, alone))
    assert ours.value == theirs.value
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.1)
    for name in ("AUC", "BinaryAccuracy"):
        assert interval_of(of_a, name) == interval_of(alone, name)
    assert interval_of(of_a, "Calibration").low == pytest.approx(interval_of(alone, "Calibration").low, rel=0.05)
    assert (of_none.estimates, of_none.differences) == ({}, {})


def test_an_interval_of_another_quantity_is_not_given() -> None:
    known = measured(kept_of(MADE.labels, MADE.scores, baseline=MADE.worse))
    value = known.estimates["BinaryAccuracy"].value
    assert known.interval("BinaryAccuracy", value) is not None
    assert known.interval("BinaryAccuracy", value + 0.1) is None
    reason = f"another quantity (the rows that were kept give {value:.4g})"
    assert known.no_interval("BinaryAccuracy", value + 0.1) == reason
    assert known.no_interval("Rouge", 0.5) is None
    assert known.interval("BinaryAccuracy", None) is None
    assert known.interval("Rouge", 0.5) is None
    apart = known.differences["AUC"].value
    assert known.difference("AUC", 0.9, 0.9 - apart) is not None
    assert known.difference("AUC", 0.9, None) is None
    assert known.difference("AUC", 0.9, 0.5) is None


def test_rows_that_are_no_numbers_are_left_out() -> None:
    scores = np.append(MADE.scores[:500], np.nan)
    labels = np.append(MADE.labels[:500], 1)
    known, without = measured(kept_of(labels, scores)), measured(kept_of(MADE.labels[:500], MADE.scores[:500]))
    assert values(known) == values(without)
    assert all(interval_of(known, name) == interval_of(without, name) for name in known.estimates)
    # Of what TFMA makes of such a row nothing is known: its own areas are shown.
    assert known.areas == {}


@pytest.mark.parametrize(
    ("labels", "scores", "reason"),
    [
        ([1, 0, 0], [0.9, 0.1, 0.2], "too few positives to tell (1 of 3 rows; none is misranked)"),
        ([1, 0, 0, 1], [0.9, 0.1, 0.6, 0.5], "too few positives to tell (2 of 4 rows; this area takes about 12)"),
        ([1, 1, 0], [0.9, 0.3, 0.5], "too few negatives to tell (1 of 3 rows; this area takes about 6)"),
    ],
)
def test_an_area_of_too_few_rows_says_so(labels: list[int], scores: list[float], reason: str) -> None:
    known = measured(kept_of(labels, scores), ["AUC", "BinaryAccuracy"])
    assert set(known.estimates) == {"BinaryAccuracy"}
    assert known.reasons == {"AUC": reason}
    assert known.no_interval("AUC", 0.5) == reason
    assert known.no_interval("BinaryAccuracy", known.estimates["BinaryAccuracy"].value) is None


EVERY = scores_like_taxi(8000)


def test_intervals_of_a_sample_are_of_the_values_of_all_rows() -> None:
    whole = kept_of(EVERY.labels, EVERY.scores, baseline=EVERY.worse)
    theirs, sample = measured(whole), measured(predictions.merge_tables([whole], max_rows=1000))
    assert sample.sampling == estimates.Sampling(1 / 8, 1.0)
    assert sample.areas == {}
    for name, estimate in theirs.estimates.items():
        area = theirs.areas.get((name, False))
        # What TFMA says of all rows.
        shown = area.binned if area else estimate.value
        assert sample.estimates[name].value != pytest.approx(shown, abs=1e-4), name
        interval, expected = sample.interval(name, shown), interval_of(theirs, name)
        assert interval is not None, name
        assert interval.low < shown < interval.high, name
        assert interval.high - interval.low == pytest.approx(expected.high - expected.low, rel=0.35), name
        assert sample.no_interval(name, shown) is None
        assert sample.interval(name, shown + 0.4) is None


def test_areas_of_a_sample_are_those_of_all_scores() -> None:
    whole = kept_of(MADE.labels, MADE.scores, baseline=MADE.worse)
    sample = predictions.merge_tables([whole], max_rows=1000)
    levels = {}
    for of_baseline, scores in ((False, MADE.scores), (True, MADE.worse)):
        different, level = np.unique(scores, return_inverse=True)
        counted = [np.bincount(level, MADE.labels == label, len(different)) for label in (1, 0)]
        levels[(), of_baseline] = Levels(different, *counted)
    names = ["AUC", "AUCPrecisionRecall"]
    [ours] = confidence.measure_confidence(sample, names, [()], levels)
    theirs = measured(whole, names)
    for name in names:
        for of_baseline in (False, True):
            exact = theirs.areas[name, of_baseline]
            assert ours.areas[name, of_baseline].exact == pytest.approx(exact.exact, abs=1e-12)
            assert ours.areas[name, of_baseline].binned == pytest.approx(exact.binned, abs=1e-12)
            assert ours.value(name, exact.binned, of_baseline) == pytest.approx(exact.exact, abs=1e-12)
        # That of all rows, as wide as if all had been kept.
        shown = theirs.areas[name, False].exact
        interval, expected = ours.interval(name, shown), interval_of(theirs, name)
        assert interval is not None
        assert interval.low < shown < interval.high
        assert interval.high - interval.low == pytest.approx(expected.high - expected.low, rel=0.2)


def test_a_difference_of_a_sample_is_that_of_the_values_shown() -> None:
    whole = kept_of(EVERY.labels, EVERY.scores, baseline=EVERY.worse)
    theirs, sample = measured(whole), measured(predictions.merge_tables([whole], max_rows=1000))
    for name in ("AUC", "BinaryAccuracy", "Calibration"):
        shown = theirs.differences[name].value + 0.5
        difference, expected = sample.difference(name, shown, 0.5), difference_of(theirs, name)
        assert difference is not None, name
        assert difference.value == shown - 0.5
        assert difference.low < difference.value < difference.high
        assert difference.standard_error == pytest.approx(expected.standard_error, rel=0.4), name


def test_rows_that_are_equal_are_sampled_together() -> None:
    rows = [f"row {number // 20}".encode() for number in range(8000)]
    same = np.repeat(np.arange(400), 20)
    table = kept_of(EVERY.labels[same], EVERY.scores[same], rows=rows)
    theirs, sample = measured(table), measured(predictions.merge_tables([table], max_rows=400))
    assert sample.sampling == estimates.Sampling(1 / 20, 20.0)
    # Twenty different rows are a poor sample: far off, and yet of the same quantity.
    shown = theirs.estimates["BinaryAccuracy"].value
    assert abs(sample.estimates["BinaryAccuracy"].value - shown) > estimates.TOLERANCE
    interval = sample.interval("BinaryAccuracy", shown)
    assert interval is not None
    expected = intervals.wilson(shown, 8000)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_equal_weights_change_nothing() -> None:
    labels, scores, worse = (column[:500] for column in (MADE.labels, MADE.scores, MADE.worse))
    alike = measured(kept_of(labels, scores, baseline=worse))
    weighted = measured(kept_of(labels, scores, baseline=worse, weights=np.full(500, 4.0)))
    assert values(weighted) == pytest.approx(values(alike))
    for name in alike.estimates:
        one, other = interval_of(alike, name), interval_of(weighted, name)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-4), name
    assert weighted.reasons == alike.reasons


def test_rows_that_weigh_nothing_do_not_count() -> None:
    counted = np.arange(3000) % 3 > 0
    weighted = measured(kept_of(MADE.labels, MADE.scores, weights=counted.astype(float)))
    alone = measured(kept_of(MADE.labels[counted], MADE.scores[counted]))
    assert values(weighted) == pytest.approx(values(alone))
    for name in alone.estimates:
        one, other = interval_of(alone, name), interval_of(weighted, name)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.004), name
    nothing = measured(kept_of(MADE.labels, MADE.scores, weights=np.zeros(3000)))
    assert (nothing.estimates, nothing.reasons) == ({}, {})


def test_unequal_weights_make_intervals_wider() -> None:
    weights = np.random.default_rng(0).exponential(size=3000)
    alike, weighted = (measured(kept_of(MADE.labels, MADE.scores, weights=each)) for each in (None, weights))
    for name in alike.estimates:
        narrow, wide = (each.high - each.low for each in (interval_of(alike, name), interval_of(weighted, name)))
        # Of rows with such weights half count; a heavy one among the few that decide costs more.
        assert wide > 1.25 * narrow, name
