"""`millrace status --follow` continues as long as the run does, and no longer."""

from __future__ import annotations

import fcntl
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import ml_metadata as mlmd
import pytest
from inspect_scene import printed, values
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from metadata.connection import UnreachableError
from metadata.files import Files
from metadata.queries import Queries
from metadata.records import NodeRun, RunRecord
from metadata.store import GoesOn
from pipeline.plan.environment import Environment
from pipeline.run import lock, workplace
from pipeline.run.workplace import Workplace


@pytest.fixture
def places(both_places: Environment) -> Environment:
    """The commands behave alike, whatever database holds the store."""
    return both_places


def test_a_run_that_goes_on_has_no_end(env: str, builder: StoreBuilder) -> None:
    builder.run("small-1")
    builder.node("Trainer", "RUNNING")
    running = values(env, "status")
    assert (running["state"], running["ended"], running["nodes"][0]["seconds"]) == ("running", None, None)


def test_following_a_run_ends_with_it(env: str, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    builder.run("small-1")
    builder.node("Trainer", "RUNNING")

    def passes(_seconds: float) -> None:
        builder.node("Trainer", "FAILED")

    monkeypatch.setattr("pipeline.commands.runs.time.sleep", passes)
    output = printed(env, "status", "--follow")
    assert [line.split()[:2] for line in output.splitlines()[:3]] == [
        ["small-1"],
        ["Trainer", "running"],
        ["Trainer", "failed"],
    ]
    assert "small-1: failed" in output


def test_following_does_not_take_the_pause_between_two_nodes_for_the_end(
    env: str, places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("small-1")
    builder.node("ExampleGen")
    running = ExitStack()
    running.enter_context(lock.held("small", places))

    def passes(_seconds: float) -> None:
        builder.node("Trainer")
        running.close()

    monkeypatch.setattr("pipeline.commands.runs.time.sleep", passes)
    output = printed(env, "status", "--follow")
    assert [line.split()[:2] for line in output.splitlines()[1:3]] == [["ExampleGen", "done"], ["Trainer", "done"]]
    assert not lock.is_held("small", places)


def test_following_goes_on_where_the_store_is_busy_at_a_look(
    env: str, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("small-1")
    builder.node("Trainer", "RUNNING")
    looks: list[str] = []

    def run(_store: Queries, run_id: str) -> RunRecord:
        looks.append(run_id)
        if len(looks) == 1:
            raise mlmd.errors.AbortedError("database is locked")
        return RunRecord(1, run_id, "small", 0, (NodeRun(1, "Trainer", "COMPLETE", 0, 2_000, {}),), None)

    monkeypatch.setattr(Queries, "run", run)
    monkeypatch.setattr("pipeline.commands.runs.time.sleep", lambda _seconds: None)
    assert "small-1: done" in printed(env, "status", "--follow")
    assert looks == ["small-1", "small-1"]


def test_following_goes_on_when_a_server_is_back(
    postgres_places: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(postgres_places.model_dump_json())
    builder = StoreBuilder(Workplace(postgres_places).connection, tmp_path)
    builder.run("small-1")
    node = builder.node("Trainer", "RUNNING")
    opened, looks = Queries.open, []

    def away_at_second(connection: mlmd_pb2.ConnectionConfig, goes_on: GoesOn, files: Files) -> Queries | None:
        looks.append("look")
        if len(looks) == 2:
            raise UnreachableError("could not connect to server: Connection refused")
        return opened(connection, goes_on, files)

    def finish(_seconds: float) -> None:
        [execution] = builder.store.get_executions_by_id([node])
        execution.last_known_state = mlmd_pb2.Execution.COMPLETE
        builder.store.put_executions([execution])

    monkeypatch.setattr(Queries, "open", away_at_second)
    monkeypatch.setattr(workplace, "time", SimpleNamespace(monotonic=time.monotonic, sleep=finish))
    monkeypatch.setattr("pipeline.commands.runs.time.sleep", lambda _seconds: None)
    assert "small-1: done" in printed(str(file), "status", "--follow")


def test_a_look_at_the_lock_keeps_no_run_from_beginning(places: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.held("small", places):
        assert lock.is_held("small", places)
    looking = (places.pipeline_root / "small" / ".lock").open()
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: looking.close())
    with lock.held("small", places):
        assert looking.closed
    assert not lock.is_held("small", places)
