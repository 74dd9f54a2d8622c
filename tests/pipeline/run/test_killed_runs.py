"""A run, or one of its nodes, whose process was killed by SIGKILL: how that is recognised and shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from inspect_scene import printed, values
from ml_metadata.proto.metadata_store_pb2 import Execution
from store_builder import StoreBuilder

from pipeline.plan import why
from pipeline.plan.environment import Environment
from pipeline.plan.project import ENGINE
from pipeline.run import lock, reports
from pipeline.run.workplace import Workplace

HOLDER = """\
import sys
from pathlib import Path
from pipeline.plan import environment
from pipeline.run import lock
places = environment.load(sys.argv[1])
folder = places.log_root / "small-1"
folder.mkdir(parents=True, exist_ok=True)
with {lock}:
    print("held", flush=True)
    sys.stdin.read()
"""
RUN = 'lock.held("small", places)'
TASK = 'lock.shared("small", places), lock.task(folder, "Trainer")'


@pytest.fixture
def places(both_places: Environment) -> Environment:
    return both_places


@contextmanager
def held(env: str, what: str) -> Iterator[None]:
    """A process that holds these locks and is killed at the end."""
    command = [sys.executable, "-c", HOLDER.format(lock=what), env]
    with subprocess.Popen(command, cwd=ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("what", [RUN, TASK])
def test_it_goes_on_while_its_lock_is_held_and_was_killed_where_it_is_not(
    env: str, builder: StoreBuilder, what: str
) -> None:
    builder.run("small-1")
    builder.node("ExampleGen")
    builder.node("Trainer", "RUNNING")
    with held(env, what):
        status = values(env, "status")
        assert [status["state"]] + [node["state"] for node in status["nodes"]] == ["running", "done", "running"]
    status = values(env, "status", "--follow")
    assert [status["state"]] + [node["state"] for node in status["nodes"]] == ["killed", "done", "killed"]
    assert (status["ended"], status["seconds"], status["nodes"][1]["ended"]) == (None, None, None)
    [run] = values(env, "runs")
    assert (run["state"], run["seconds"]) == ("killed", None)
    followed = printed(env, "status", "--follow").splitlines()
    assert [line.split() for line in followed[1:3]] == [["ExampleGen", "done", "0.0", "s"], ["Trainer", "killed"]]
    assert followed[3].strip() == "small-1: killed"


def test_a_node_by_itself_is_told_from_the_others_of_its_run(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    for node in ("ExampleGen", "Trainer", "Evaluator"):
        builder.node(node, "RUNNING")
    folder = places.log_root / "one"
    with lock.task(folder, "ExampleGen"):
        pass
    with lock.shared("small", places), lock.task(folder, "Trainer"):
        # The Evaluator's lock is on a machine whose locks cannot be seen from here.
        assert states(places, "one") == {"ExampleGen": "KILLED", "Trainer": "RUNNING", "Evaluator": "RUNNING"}
    assert states(places, "one") == {"ExampleGen": "KILLED", "Trainer": "KILLED", "Evaluator": "RUNNING"}


def states(places: Environment, run_id: str) -> dict[str, str]:
    store = Workplace(places).open_store()
    assert store is not None
    run = store.run(run_id)
    assert run is not None
    by_node = {node.node: node.state for node in run.nodes}
    assert {name: node.state for name, node in store.node_runs("small", run_id).items()} == by_node
    assert [store.history("small", name)[0].state for name in by_node] == list(by_node.values())
    return by_node


def test_nothing_is_said_of_a_run_whose_locks_are_elsewhere(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer", "RUNNING")
    assert states(places, "one") == {"Trainer": "RUNNING"}
    with lock.held("small", places):
        pass
    # The recipe's lock is that of a run on this machine; the other run's log folder is not here.
    assert states(places, "one") == {"Trainer": "RUNNING"}
    (places.log_root / "one").mkdir(parents=True)
    assert states(places, "one") == {"Trainer": "KILLED"}


def test_a_lock_that_cannot_be_read_tells_nothing(
    places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("one")
    builder.node("Trainer", "RUNNING")
    with lock.task(places.log_root / "one", "Trainer"):
        pass

    def refused(_path: Path) -> bool:
        raise PermissionError("not yours")

    monkeypatch.setattr(lock, "_is_locked", refused)
    assert states(places, "one") == {"Trainer": "RUNNING"}


def test_a_run_that_was_killed_before_its_first_node(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    (places.log_root / "one").mkdir(parents=True)
    store = Workplace(places).open_store()
    assert store is not None
    with lock.held("small", places):
        assert [run.state for run in store.runs()] == ["NEW"]
    [run] = store.runs()
    assert (run.state, run.ended, run.goes_on) == ("KILLED", None, False)


def test_what_ends_between_the_two_looks_was_not_killed(
    places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("one")
    node = builder.node("Trainer", "RUNNING")

    def ends(_environment: Environment, *_of: str | None) -> bool:
        [execution] = builder.store.get_executions_by_id([node])
        execution.last_known_state = Execution.COMPLETE
        builder.store.put_executions([execution])
        return False

    monkeypatch.setattr(lock, "goes_on", ends)
    assert states(places, "one") == {"Trainer": "COMPLETE"}


def test_the_next_run_sweeps_what_a_killed_node_left(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer", "RUNNING")
    with lock.task(places.log_root / "one", "Trainer"):
        pass
    assert states(places, "one") == {"Trainer": "KILLED"}
    Workplace(places).sweep_leftovers("small")
    assert states(places, "one") == {"Trainer": "CANCELED"}


def test_the_report_and_why_say_so(places: Environment, builder: StoreBuilder, project: Path, tmp_path: Path) -> None:
    builder.run("one")
    builder.node("Trainer", "RUNNING")
    with lock.task(places.log_root / "one", "Trainer"):
        pass
    store = Workplace(places).open_store()
    assert store is not None
    assert why.explain(store, "small", "Trainer") == (
        "Trainer ran (and was killed) because it had never run to its end before."
    )
    run = store.run("one")
    assert run is not None
    reports.write(store, run, reports.surroundings(store, run, Workplace(places)), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "It was killed in Trainer: it never ended, and no process goes on with it." in text
    assert '<span class="state state-killed">killed</span>' in text
