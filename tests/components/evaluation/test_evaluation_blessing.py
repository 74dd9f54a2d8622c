"""Whether a candidate is blessed, refused or undecided, and the sentence that says why."""

from __future__ import annotations

from typing import Any

import pytest

from components.evaluation import blessing
from components.evaluation.blessing import Decision, Measured
from components.evaluation.settings import EvaluatorSettings
from contracts.evaluation import Bar, Difference, Interval, Metric, Slice


def apart(value: float, error: float | None) -> Difference:
    return Difference(value=value, low=value - 0.01, high=value + 0.01, method="paired DeLong", standard_error=error)


def metric(value: float | None, baseline: float | None = None, error: float | None = None, **bar: Any) -> Metric:
    difference = apart(value - baseline, error) if value and baseline and error is not None else None
    return Metric(name="AUC", value=value, baseline=baseline, difference=difference, bar=Bar(**bar))


def decided(*metrics: Metric, earlier: tuple[bool, ...] = (), rows: int = 1000, **settings: Any) -> Decision:
    bars = {each.name: each.bar.model_dump() for each in metrics}
    given = EvaluatorSettings.model_validate({"judge_by": "evidence", "metrics": bars, **settings})
    return blessing.decide(Measured(rows, metrics), given, earlier)


@pytest.mark.parametrize(
    ("value", "error", "outcome", "reason"),
    [
        (
            0.945,
            0.0016,
            "blessed",
            "Blessed: AUC is 0.9450, at most 0.0080 below the served model's 0.9500 (allowed 0.0100; look 1 at these "
            "rows).",
        ),
        (
            0.96,
            0.0016,
            "blessed",
            "Blessed: AUC is 0.9600, at least 0.0070 above the served model's 0.9500 (allowed 0.0100; look 1 at these "
            "rows).",
        ),
        (
            0.945,
            0.005,
            "undecided",
            "Undecided: AUC is 0.9450 and may be 0.0144 below the served model's 0.9500 (allowed 0.0100; look 1 at "
            "these rows): these 1,000 rows are too few to tell, about 3,516 are needed.",
        ),
        (0.935, 0.005, "refused", "Refused: AUC is 0.9350, 0.0150 below the served model's 0.9500 (allowed 0.0100)."),
    ],
)
def test_a_loss_is_judged_by_its_interval(value: float, error: float, outcome: str, reason: str) -> None:
    decision = decided(metric(value, 0.95, error, max_loss=0.01))
    assert (decision.outcome, decision.reason) == (outcome, reason)
    assert decision.blessed == (outcome == "blessed") == decision.shown_not_worse
    [judged] = decision.metrics
    assert (judged.passed, judged.undecided) == (outcome == "blessed", outcome == "undecided")


def test_where_lower_is_better_a_loss_is_upwards() -> None:
    bar = {"max_loss": 0.01, "direction": "lower_is_better"}
    worse = decided(metric(0.965, 0.95, 0.001, **bar))
    assert worse.reason == "Refused: AUC is 0.9650, 0.0150 above the served model's 0.9500 (allowed 0.0100)."
    assert decided(metric(0.93, 0.95, 0.001, **bar)).outcome == "blessed"


def test_who_is_unsure_may_push_and_says_so() -> None:
    decision = decided(metric(0.945, 0.95, 0.005, max_loss=0.01), when_unsure="push")
    assert (decision.outcome, decision.blessed, decision.shown_not_worse) == ("undecided", True, False)
    assert decision.reason.startswith("Undecided, and blessed all the same (evaluator.when_unsure is push): AUC is ")


def test_a_difference_that_cannot_be_computed_is_no_pass() -> None:
    decision = decided(metric(0.95, 0.95, None, max_loss=0.01))
    assert decision.reason == (
        "Undecided: AUC is 0.9500 and the served model's 0.9500; how certain the difference is cannot be computed."
    )


def test_each_look_at_the_same_rows_makes_the_interval_wider() -> None:
    candidate = metric(0.945, 0.95, 0.0024, max_loss=0.01)
    assert decided(candidate).outcome == "blessed"
    assert decided(candidate, earlier=(True,)).outcome == "blessed"
    third = decided(candidate, earlier=(True, False))
    assert third.outcome == "undecided"
    assert "look 3 at these rows): these 1,000 rows are too few to tell, about 1,691 are needed, or 811 that" in (
        third.reason
    )


def test_bounds_are_held_against_the_value_and_one_that_is_missed_refuses_whatever_is_unsure() -> None:
    decision = decided(metric(0.945, 0.95, 0.005, lower_bound=0.946, max_loss=0.01))
    assert decision.reason == "Refused: AUC is 0.9450, expected ≥ 0.946."
    assert (decision.metrics[0].passed, decision.metrics[0].undecided) == (False, False)
    assert (
        decided(metric(0.8, lower_bound=0.85, upper_bound=0.9)).reason
        == "Refused: AUC is 0.8000, expected ≥ 0.85, ≤ 0.9."
    )
    assert decided(metric(None, lower_bound=0.9)).reason == "Refused: AUC is not defined, expected ≥ 0.9."


def test_the_first_model_has_nothing_to_be_compared_with() -> None:
    decision = decided(metric(0.95, lower_bound=0.9, max_loss=0.01), Metric(name="Recall", value=0.5))
    assert decision.reason == "Blessed: AUC is 0.9500 (≥ 0.9); no served model to compare it with."
    assert (decision.shown_not_worse, decision.shown_better) == (False, False)
    assert decided(metric(0.95, max_loss=0.01)).reason == "Blessed: no served model to compare it with."


def test_an_evaluation_that_tfma_refuses_is_refused() -> None:
    settings = EvaluatorSettings.model_validate({"metrics": {"AUC": {"lower_bound": 0.5}}})
    decision = blessing.decide(Measured(9, [metric(0.9, lower_bound=0.5)], fault="rows are not there"), settings)
    assert decision.reason == "Refused: rows are not there."


@pytest.mark.parametrize(("loss", "blessed"), [(0.25, True), (0.26, False)])
def test_by_points_the_loss_itself_decides(loss: float, blessed: bool) -> None:
    decision = decided(metric(0.75 - loss, 0.75, 0.1, max_loss=0.25), judge_by="points")
    assert (decision.blessed, decision.outcome == "refused") == (blessed, not blessed)
    # It shows nothing, so that it hands no level on to the next look.
    assert not decision.shown_not_worse


class Served:
    """Models pushed one after the other, each compared with what is served and with the reference."""

    def __init__(self, judge_by: str, error: float = 0.001) -> None:
        self.judge_by, self.error = judge_by, error
        self.served = self.reference = 0.95

    def offer(self, value: float) -> Decision:
        candidate = metric(value, self.served, self.error, max_loss=0.01)
        if self.reference != self.served:
            reference = apart(value - self.reference, self.error)
            candidate = candidate.model_copy(update={"reference_difference": reference})
        decision = decided(candidate, judge_by=self.judge_by)
        if decision.blessed:
            self.reference = value if decision.shown_better else self.reference
            self.served = value
        return decision


@pytest.mark.parametrize("judge_by", ["points", "evidence"])
def test_losses_do_not_add_up(judge_by: str) -> None:
    line = Served(judge_by)
    assert line.offer(0.944).blessed
    second = line.offer(0.938)
    assert not second.blessed
    assert second.reason == "Refused: AUC is 0.9380, 0.0120 below the best served model's 0.9500 (allowed 0.0100)."
    third = line.offer(0.945)
    better, worse = {
        "points": ("0.0010 above", "0.0050 below the best served model's 0.9500 (allowed 0.0100)."),
        "evidence": ("at most 0.0009 below", "at most 0.0069 below the best served model's 0.9500."),
    }[judge_by]
    assert third.reason.startswith(f"Blessed: AUC is 0.9450, {better} the served model's 0.9440 (allowed 0.0100")
    assert third.reason.endswith(worse)
    assert (line.served, line.reference) == (0.945, 0.95)


@pytest.mark.parametrize("judge_by", ["points", "evidence"])
def test_a_model_that_is_shown_to_be_better_is_the_next_reference(judge_by: str) -> None:
    line = Served(judge_by)
    assert line.offer(0.946).blessed
    assert line.offer(0.953).blessed
    assert (line.served, line.reference) == (0.953, 0.953)
    assert not line.offer(0.942).blessed


def test_what_may_be_chance_moves_no_reference() -> None:
    line = Served("evidence")
    assert line.offer(0.9515).blessed
    assert (line.served, line.reference) == (0.9515, 0.95)


def part(name: str, rows: int, value: float | None, difference: Difference | None = None, error: float = 0.01) -> Slice:
    interval = None if value is None else Interval(low=value - 0.02, high=value + 0.02, standard_error=error)
    return Slice(
        slice=name,
        rows=rows,
        features=[pair.partition("=")[0] for pair in name.split(" and ")],
        metrics={"AUC": value},
        intervals={"AUC": interval},
        differences={"AUC": difference},
    )


def judged(*slices: Slice, small: tuple[tuple[str, int], ...] = (), **settings: Any) -> Decision:
    given = EvaluatorSettings.model_validate({"judge_by": "evidence", "slices": ["hour"], **settings})
    of_all = Metric(name="AUC", value=0.95, bar=Bar(lower_bound=0.9))
    return blessing.decide(Measured(5000, [of_all], slices, small), given)


BAR = {"AUC": {"lower_bound": 0.9}}


def test_a_slice_is_refused_for_only_where_it_is_shown_to_miss_its_bar() -> None:
    decision = judged(part("hour=1", 900, 0.86), part("hour=2", 300, 0.89), part("hour=3", 200, 0.95), metrics=BAR)
    assert decision.reason == "Refused: AUC of hour=1 (900 rows) is 0.8600, shown to miss its bar: ≥ 0.9."
    assert [(each.missed, each.undecided) for each in decision.slices] == [(["AUC"], []), ([], ["AUC"]), ([], [])]
    assert decision.not_judged == [
        "Off their bars, but by no more than chance may explain: AUC of hour=2 (300 rows) is 0.8900."
    ]


def test_one_of_many_slices_may_be_off_by_chance() -> None:
    # Two standard errors: one slice in 44.
    alone = judged(part("hour=1", 100, 0.88), metrics=BAR)
    assert alone.outcome == "refused"
    others = [part(f"hour={hour}", 100, 0.95) for hour in range(2, 24)]
    assert judged(part("hour=1", 100, 0.88), *others, metrics=BAR).outcome == "blessed"


def test_slices_may_have_bars_of_their_own_or_none() -> None:
    low = part("hour=1", 900, 0.7)
    assert judged(low, metrics={"AUC": {"lower_bound": 0.9, "slices": {"lower_bound": 0.6}}}).outcome == "blessed"
    assert judged(low, metrics={"AUC": {"lower_bound": 0.9, "slices": {}}}).outcome == "blessed"
    assert judged(low, metrics=BAR, judge_by="points").outcome == "blessed"
    own = {"AUC": {"lower_bound": 0.9, "slices": {"lower_bound": 0.75}}}
    assert judged(low, metrics=own, judge_by="points").reason == (
        "Refused: AUC of hour=1 (900 rows) is 0.7000, expected ≥ 0.75."
    )


def test_a_loss_in_a_slice_refuses_where_it_is_shown() -> None:
    bars = {"AUC": {"lower_bound": 0.9, "slices": {"max_loss": 0.02}}}
    decision = judged(part("hour=1", 900, 0.9, apart(-0.05, 0.01)), part("hour=2", 90, 0.9), metrics=bars)
    assert decision.reason == (
        "Refused: AUC of hour=1 (900 rows) is 0.9000, 0.0500 worse than the served model's, shown to miss its bar: "
        "a loss ≤ 0.02."
    )
    assert decision.not_judged == [
        "Not judged, because these rows do not suffice to compute it: AUC of hour=2 (90 rows)."
    ]
    assert judged(part("hour=1", 900, 0.9, apart(-0.03, 0.01)), metrics=bars).outcome == "blessed"


def test_slices_that_are_too_small_or_undefined_are_named_and_not_judged() -> None:
    small = (("hour=4", 29), ("hour=5", 12), ("hour=6", 2), ("hour=7", 1))
    decision = judged(part("hour=1", 40, None), small=small, metrics=BAR)
    assert decision.outcome == "blessed"
    assert decision.not_judged == [
        "Not judged, because they have fewer than 30 rows: hour=4 (29); hour=5 (12); hour=6 (2); and 1 more.",
        "Not judged, because these rows do not suffice to compute it: AUC of hour=1 (40 rows).",
    ]
    assert judged(small=small, metrics={"AUC": {"lower_bound": 0.9, "slices": {}}}).not_judged == []


NO_SLICE_BARS = {"AUC": {"lower_bound": 0.5, "slices": {}}}


def test_a_gap_between_slices_refuses_where_it_is_shown() -> None:
    parts = [part("hour=1", 900, 0.95), part("hour=2", 300, 0.85), part("day=1", 300, 0.70), part("hour=3", 9, None)]
    decision = judged(*parts, metrics=NO_SLICE_BARS, max_gap={"AUC": 0.05})
    assert decision.reason == (
        "Refused: AUC of hour=2 (300 rows) is 0.8500, 0.1000 below that of hour=1 (900 rows), shown to miss its bar: "
        "a gap ≤ 0.05."
    )
    near = [part("hour=1", 900, 0.95), part("hour=2", 300, 0.88)]
    decision = judged(*near, metrics=NO_SLICE_BARS, max_gap={"AUC": 0.05})
    assert decision.outcome == "blessed"
    assert decision.not_judged[0].endswith(
        "AUC of hour=2 (300 rows) is 0.8800, 0.0700 below that of hour=1 (900 rows)."
    )
    assert judged(*near, metrics=NO_SLICE_BARS, max_gap={"AUC": 0.05}, judge_by="points").outcome == "refused"
