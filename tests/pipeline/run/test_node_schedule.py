"""Which nodes of a run begin when, and why a run failed."""

from __future__ import annotations

from contracts.failure import Failure
from pipeline.run.schedule import Schedule

DIAMOND = {"Read": [], "Count": ["Read"], "Gate": ["Count"], "Transform": ["Read"], "Train": ["Gate", "Transform"]}


def _begin_all(schedule: Schedule) -> list[str]:
    begun = schedule.ready()
    for node in begun:
        schedule.begin(node)
    return begun


def _failure(node: str) -> Failure:
    return Failure(node=node, kind="DataError", message=f"{node} failed", lines=[], findings=None)


def test_nodes_that_do_not_wait_for_each_other_are_ready_at_once() -> None:
    schedule = Schedule(DIAMOND)
    assert _begin_all(schedule) == ["Read"]
    assert schedule.ready() == []
    schedule.end("Read", None)
    assert _begin_all(schedule) == ["Count", "Transform"]
    schedule.end("Transform", None)
    assert schedule.ready() == []
    schedule.end("Count", None)
    assert _begin_all(schedule) == ["Gate"]
    schedule.end("Gate", None)
    assert _begin_all(schedule) == ["Train"]
    schedule.end("Train", None)
    assert schedule.ready() == []
    assert schedule.failure is None


def test_after_a_failure_only_what_may_say_why_begins() -> None:
    schedule = Schedule(DIAMOND | {"Own": ["Read"]})
    _begin_all(schedule)
    schedule.end("Read", None)
    assert schedule.ready() == ["Count", "Transform", "Own"]
    schedule.begin("Count")
    schedule.begin("Transform")
    schedule.end("Transform", _failure("Transform"))
    assert schedule.ready() == []
    schedule.end("Count", None)
    assert _begin_all(schedule) == ["Gate"]
    schedule.end("Gate", None)
    assert schedule.ready() == []
    assert schedule.failure == _failure("Transform")


def test_of_two_failures_the_first_in_the_data_flow_is_told() -> None:
    schedule = Schedule(DIAMOND)
    _begin_all(schedule)
    schedule.end("Read", None)
    _begin_all(schedule)
    schedule.end("Transform", _failure("Transform"))
    schedule.end("Count", _failure("Count"))
    assert schedule.failure == _failure("Count")
