"""One-sided tests, Holm's correction, and levels of looks at the same rows."""

from __future__ import annotations

import math

import pytest

from benchmarks import blessing
from components.evaluation import evidence, looks
from contracts.evaluation import Difference, Interval


@pytest.mark.parametrize(
    ("margin", "error", "expected"),
    [(0.0, 1.0, 0.5), (1.959963984540054, 1.0, 0.025), (-1.0, 2.0, 0.6914624612740131), (0.1, 0, 0.0), (-0.1, 0, 1.0)],
)
def test_p_values_are_the_normal_distribution_s_tails(margin: float, error: float, expected: float) -> None:
    assert evidence.p_value(margin, error) == pytest.approx(expected, abs=1e-12)


def test_quantiles_undo_p_values() -> None:
    for level in (0.4, 0.05, 3e-6):
        assert evidence.p_value(evidence.quantile(level), 1.0) == pytest.approx(level)


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.01, 0.04, 0.03], [True, False, False]),  # 0.03 > 0.05 / 2, and 0.04 is not looked at any more.
        ([0.01, 0.04, 0.02], [True, True, True]),
        ([0.02, 0.02, 0.02], [False, False, False]),
        ([0.05], [True]),
    ],
)
def test_holm_rejects_from_the_smallest_p_value_on(p_values: list[float], rejected: list[bool]) -> None:
    assert evidence.holm(p_values) == rejected


def test_so_many_rows_shift_the_end_of_the_interval_to_the_bound() -> None:
    needed = evidence.rows_needed(rows=500, standard_error=0.01, margin=0.005, level=0.025)
    assert needed == math.ceil(500 * (1.959963984540054 * 2) ** 2)
    assert evidence.p_value(0.005, 0.01 * math.sqrt(500 / needed)) == pytest.approx(0.025, rel=1e-3)


def test_all_looks_together_have_the_error_rate() -> None:
    shares = [evidence.share_of_look(look) for look in range(1, 100_000)]
    assert sum(shares) == pytest.approx(evidence.ERROR_RATE, rel=1e-4)
    assert shares[0] / evidence.ERROR_RATE == pytest.approx(0.6079, abs=1e-4)


def test_a_look_that_passed_hands_its_level_on_and_one_that_did_not_uses_it_up() -> None:
    first, second, third = (evidence.share_of_look(look) for look in (1, 2, 3))
    assert evidence.look_level([]) == first
    assert evidence.look_level([False]) == second
    assert evidence.look_level([True]) == pytest.approx(first + second)
    assert evidence.look_level([True, True]) == pytest.approx(first + second + third)
    assert evidence.look_level([True, False]) == third
    assert evidence.look_level([False, True]) == pytest.approx(second + third)


def test_half_an_interval_s_width_says_the_standard_error_where_its_method_does_not() -> None:
    assert evidence.standard_error_of(None) is None
    assert evidence.standard_error_of(Interval(low=0.1, high=0.3, standard_error=0.07)) == 0.07
    of_width = evidence.standard_error_of(Interval(low=0.4, high=0.6, level=0.95))
    assert of_width == pytest.approx(0.1 / 1.959963984540054)


@pytest.mark.parametrize(
    ("metric", "method", "expected"),
    [
        ("BinaryAccuracy", "paired bootstrap", 1 / 50),
        ("AUC", "paired DeLong", 0.0),
        ("MeanSquaredError", "paired bootstrap", 0.0),
    ],
)
def test_models_that_no_row_tells_apart_are_not_surely_equal(metric: str, method: str, expected: float) -> None:
    difference = Difference(value=0, low=0, high=0, method=method, standard_error=0)
    assert evidence.standard_error_of_difference(metric, difference, rows=50) == expected


class Blessing:
    """A ModelBlessing as ML Metadata has it."""

    def __init__(self, number: int, rows: str, model: int, baseline: int, not_worse: int) -> None:
        held = {"evaluated_rows": rows, "current_model_id": model, "baseline_model_id": baseline}
        self.id = number
        self.custom_properties = {
            name: type("Value", (), {"string_value": value, "int_value": value})
            for name, value in {**held, "shown_not_worse": not_worse}.items()
        }


def test_looks_are_counted_by_rows_and_pairs_of_models() -> None:
    text = looks.looks_to_text(
        [
            Blessing(9, "a", model=4, baseline=1, not_worse=0),
            Blessing(2, "a", model=2, baseline=1, not_worse=1),
            Blessing(3, "b", model=2, baseline=1, not_worse=1),
            Blessing(1, "a", model=1, baseline=0, not_worse=0),  # Compared with nothing.
            Blessing(5, "a", model=3, baseline=1, not_worse=0),
            Blessing(7, "a", model=2, baseline=1, not_worse=0),  # Again, under other bars.
        ]
    )
    assert looks.earlier_looks(text, "a", model=8, baseline=1) == [True, False, False]
    assert looks.earlier_looks(text, "a", model=3, baseline=1) == [True]
    assert looks.earlier_looks(text, "a", model=3, baseline=2) == [True, False, False]
    assert looks.earlier_looks(text, "b", model=8, baseline=1) == [True]
    assert looks.earlier_looks(text, "c", model=8, baseline=1) == []


def test_of_many_candidates_that_are_too_bad_hardly_one_is_ever_pushed() -> None:
    just_too_bad, _, good_and_bad, each_a_little_worse, _ = blessing.SCENARIOS
    for scenario in (just_too_bad, good_and_bad, each_a_little_worse):
        wrong, _ = blessing.wrong_pushes(scenario, sequences=400, candidates=40)
        assert wrong <= evidence.ERROR_RATE
    # As good as what is served, a third is pushed at once, and most of these in time.
    assert blessing.wrong_pushes(good_and_bad, sequences=400, candidates=1)[1] > 0.3
    assert blessing.power(0, []) == pytest.approx(0.928, abs=0.001)
