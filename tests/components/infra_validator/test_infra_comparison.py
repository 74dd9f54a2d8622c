"""When two answers are the same, and which feature makes them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from components.infra_validator.comparison import Allowed, culprit, excesses, shown
from components.infra_validator.settings import InfraValidatorSettings
from contracts.model_reports import Tolerance

EXACT = Tolerance(1e-5, 1e-5)


def off(got: Any, wanted: Any) -> list[float]:
    return excesses({"score": np.array(got)}, {"score": np.array(wanted)}, EXACT)["score"].tolist()


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        ([1.0], [1.00001]),
        ([100.0], [100.0009]),
        ([0.0], [9e-6]),
        ([float("nan"), float("inf")], [float("nan"), float("inf")]),
        ([3], [3.0]),
        ([[1, 2]], [[1, 2]]),
        ([True], [True]),
    ],
)
def test_equal_up_to_the_order_of_sums(got: Any, wanted: Any) -> None:
    assert max(off(got, wanted)) <= 1


def test_the_excess_is_counted_in_what_is_allowed_a_row() -> None:
    assert off([[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 4e-5]]) == [0.0, pytest.approx(4.0, rel=1e-3)]


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        ([float("nan")], [1.0]),
        ([1.0], [float("inf")]),
        ([1], [2]),
        ([1.5], [1]),
        ([[1.0, 2.0]], [1.0]),
        (["plus"], [1.0]),
        (["plus"], ["minus"]),
    ],
)
def test_what_is_no_distance_is_off_by_infinity(got: Any, wanted: Any) -> None:
    assert off(got, wanted) == [float("inf")]


def test_a_class_may_change_only_where_its_scores_did() -> None:
    wanted = {"score": np.array([0.5, 0.5, 0.5]), "id": np.array([1, 1, 1])}
    got = {"score": np.array([0.5, 0.500001, 0.6]), "id": np.array([0, 0, 0])}
    assert excesses(got, wanted, EXACT)["id"].tolist() == [float("inf"), 0.0, float("inf")]


def test_mixed_precision_allows_for_its_rounding() -> None:
    settings = InfraValidatorSettings(max_difference=1e-3, max_tflite_difference=0.5)
    assert Allowed.by(settings, "float32").predictions == Tolerance(1e-3, 1e-3)
    mixed = Allowed.by(settings, "mixed_bfloat16")
    assert (mixed.predictions, mixed.features) == (Tolerance(5e-2, 1e-2), Tolerance(1e-3, 1e-3))
    assert mixed.tflite == Tolerance(0.5, 0.5)


def test_values_as_a_sentence_holds_them() -> None:
    assert shown(np.array([0.5])) == "0.5"
    assert shown(np.array([1.0, 2.0])) == "[1, 2]"
    assert shown(np.zeros(8)) == "[0, 0, 0, 0, 0, 0, … (8 values)]"


def test_the_culprit_is_the_value_whose_exchange_brings_answers_together() -> None:
    def disagreement(rows: Sequence[Mapping[str, Any]]) -> Any:
        return np.array([row.get("b", 0) * 10 + row.get("a", 0) for row in rows], float)

    assert culprit({"a": 2, "b": 1, "c": 3}, {"a": 1, "c": 3}, disagreement) == "b"
    assert culprit({"a": 2}, {"a": 5}, disagreement) is None
    assert culprit({"a": 2}, {"a": 2}, disagreement) is None
