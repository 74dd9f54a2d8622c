"""What an unknown name was probably meant to be."""

import pytest

from contracts.near_names import did_you_mean, near_names

NODES = ["Trainer", "Transform", "Evaluator"]


@pytest.mark.parametrize(("name", "meant"), [("Trainr", "Trainer"), ("trainer", "Trainer"), ("TRANSFROM", "Transform")])
def test_the_nearest_name_is_suggested_whatever_its_case(name: str, meant: str) -> None:
    assert near_names(name, NODES) == [meant]
    assert did_you_mean(name, NODES) == f"Did you mean {meant}?"


def test_without_a_near_name_all_are_listed() -> None:
    assert did_you_mean("xyz", NODES) == "There are: Trainer, Transform, Evaluator."
    assert did_you_mean("xyz", []) == "There are: none."
    assert did_you_mean("xyz", NODES, otherwise="No run began yet.") == "No run began yet."


def test_names_that_differ_only_in_case_are_all_kept() -> None:
    assert near_names("Fares", ["fare", "Fare", "tip"], most=3, cutoff=0.0) == ["fare", "Fare", "tip"]


def test_no_more_are_given_than_asked_for() -> None:
    assert near_names("tra", NODES, most=1, cutoff=0.0) == ["Trainer"]
    assert near_names("xyz", NODES, most=3) == []
    assert near_names("xyz", NODES, most=0, cutoff=0.0) == []
