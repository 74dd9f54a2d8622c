"""What one set of versions made, in the hands of the other (docs/sets.md); `make test-next` makes it and runs this."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

import pytest
from copied_project import Project
from other_set import ANSWERS, answers

from benchmarks import equality
from contracts.evaluation import Summary

VARIABLE = "MILLRACE_OTHER_SET"
TOLERANCE = 1e-6
HISTOGRAM_TOLERANCE = 5e-3
"""TFDV interpolates the counts of buckets of equal width in float64 with NumPy 1, and in float32 with NumPy 2."""

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} names no project that ran with the other set (make test-next does)."
)


@pytest.fixture
def other() -> Project:
    """A project in which the other set ran the taxi recipe."""
    return Project(Path(os.environ[VARIABLE]))


def summary(outputs: dict[str, Path]) -> Summary:
    return Summary.model_validate_json((outputs["evaluation"] / "summary.json").read_bytes())


def test_both_make_the_same(project: Project, other: Project) -> None:
    ran = project.millrace("run", "taxi")
    assert ran.code == 0, ran.output + ran.errors
    ours, theirs = project.outputs(), other.outputs()
    assert ours.keys() == theirs.keys()

    def both(output: str) -> tuple[str, str]:
        return str(ours[output]), str(theirs[output])

    assert equality.count_different_examples(*both("examples")) == 0
    assert equality.statistics_difference(*both("statistics"), histograms=False) <= TOLERANCE
    assert equality.statistics_difference(*both("statistics")) <= HISTOGRAM_TOLERANCE
    assert equality.different_vocabularies(*both("transform_graph")) == []
    assert equality.transformed_difference(*both("transformed_examples")) <= TOLERANCE

    here, there = summary(ours).metrics, summary(theirs).metrics
    assert [metric.name for metric in here] == [metric.name for metric in there]
    for metric, twin in zip(here, there, strict=True):
        for value, interval in ((metric.value, twin.interval), (twin.value, metric.interval)):
            if interval is not None:
                assert value is not None
                assert interval.low <= value <= interval.high, (metric.name, value, interval)


def test_the_other_s_model_is_served_and_answers_the_same(other: Project) -> None:
    expected = json.loads((other.folder / ANSWERS).read_text(encoding="utf-8"))
    answered = answers(other)
    assert answered.keys() == expected.keys()
    for name, values in expected.items():
        assert values
        assert answered[name] == pytest.approx(values, rel=1e-5, abs=1e-6)


def test_the_other_s_store_is_gone_on_with(other: Project) -> None:
    before = other.run_ids()
    ran = other.millrace("run", "taxi")
    assert ran.code == 0, ran.output + ran.errors
    assert other.run_ids()[1:] == before
    # The model is judged against the one that the other set pushed.
    assert len(other.pushed_versions()) == 2
    explained = other.millrace("why", "Trainer").output
    assert f"-> {version('tensorflow')})" in explained
