"""The processes that run nodes: what runs in which, what fails in one, and what is left when one is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.failure import Failure
from pipeline.run import lanes
from pipeline.run.lanes import KilledError, Lanes
from pipeline.run.schedule import Schedule

# Forks of a process in which other tests have started threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork\\(\\) may lead to deadlocks:DeprecationWarning")


@pytest.fixture
def noted(tmp_path: Path) -> Callable[[str], Failure | None]:
    """Work that notes the process of each node."""

    def work(node: str) -> Failure | None:
        (tmp_path / node).write_text(str(os.getpid()))
        return None

    return work


def test_nodes_that_follow_each_other_share_a_process(noted: lanes.Work, tmp_path: Path) -> None:
    with Lanes(noted, 2) as two:
        two.run(Schedule({"A": [], "B": ["A"], "C": ["B"]}))
    processes = {(tmp_path / node).read_text() for node in "ABC"}
    assert len(processes) == 1
    assert processes != {str(os.getpid())}


def test_nodes_that_do_not_wait_for_each_other_run_at_once(tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    os.mkfifo(meet)

    def work(node: str) -> Failure | None:
        # Each waits here for the other.
        with meet.open("rb" if node == "A" else "wb"):
            (tmp_path / node).touch()
        return None

    with Lanes(work, 2) as two:
        two.run(Schedule({"A": [], "B": []}))
    assert (tmp_path / "A").exists()
    assert (tmp_path / "B").exists()


def test_on_one_core_one_runs_after_the_other(tmp_path: Path) -> None:
    busy = tmp_path / "busy"

    def work(node: str) -> Failure | None:
        busy.mkdir()  # It exists while another node runs.
        busy.rmdir()
        return None

    schedule = Schedule({"A": [], "B": [], "C": []})
    with Lanes(work, 1) as one:
        one.run(schedule)
    assert schedule.failure is None
    assert schedule.ready() == []


def test_a_process_that_holds_much_is_not_used_again(
    noted: lanes.Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "KEPT_BYTES", 0)
    with Lanes(noted, 1) as one:
        one.run(Schedule({"A": [], "B": ["A"]}))
    assert (tmp_path / "A").read_text() != (tmp_path / "B").read_text()


def test_a_failure_comes_back_and_the_process_goes_on(tmp_path: Path) -> None:
    failure = Failure(node="A", kind="DataError", message="no rows", lines=["features.py:1"], findings=None)

    def work(node: str) -> Failure | None:
        (tmp_path / node).touch()
        return failure if node == "A" else None

    schedule = Schedule({"B": [], "A": [], "C": ["A"]})
    with Lanes(work, 1) as one:
        one.run(schedule)
    assert schedule.failure == failure
    assert (tmp_path / "B").exists()
    assert not (tmp_path / "C").exists()


def test_a_process_that_is_killed_ends_the_run_and_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meet")

    def work(node: str) -> Failure | None:
        if node == "A":
            with (tmp_path / "meet").open("rb"):
                (tmp_path / "A").write_text(str(os.getpid()))
            signal.pause()
        with (tmp_path / "meet").open("wb"):
            pass
        while not (tmp_path / "A").exists() or not (tmp_path / "A").read_text():
            pass
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    with (
        pytest.raises(KilledError, match=r"the process of B ended with exit code -9\.") as raised,
        Lanes(work, 2) as two,
    ):
        two.run(Schedule({"A": [], "B": []}))
    assert raised.value.number == signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "A").read_text()), 0)
