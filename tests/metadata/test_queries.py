"""Whole pages of runs and artifacts, and what is deployed; equal to what ML Metadata's own API returns row by row."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import ml_metadata as mlmd
import postgres
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from benchmarks import inspect_store
from metadata import connection as connections
from metadata import paging
from metadata.queries import Queries
from metadata.records import Place
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace

Connection = mlmd_pb2.ConnectionConfig


def opened(where: Connection | Environment) -> Queries:
    store = Queries.open(Workplace(where).connection if isinstance(where, Environment) else where)
    assert store is not None
    return store


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def synthetic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """A store of 30 runs of ten nodes; every third one is cached up to Transform."""
    if request.param == "sqlite":
        connection = connections.sqlite(tmp_path_factory.mktemp("synthetic") / "metadata.sqlite")
    else:
        server = request.getfixturevalue("postgres_server").new_database()
        parts = (server.host, server.port, server.database, server.user)
        connection = connections.postgresql(*parts, postgres.PASSWORD)
    inspect_store.fill(connection, runs=30)
    return connection


def test_runs_are_those_of_mlmd_row_by_row(synthetic: Connection) -> None:
    theirs = mlmd.MetadataStore(synthetic)
    contexts = sorted(theirs.get_contexts_by_type("pipeline_run"), key=lambda context: -context.id)
    ours = opened(synthetic).runs(limit=30)
    assert [(run.id, run.number, run.started) for run in ours] == [
        (context.name, context.id, context.create_time_since_epoch) for context in contexts
    ]
    for run, context in zip(ours, contexts, strict=True):
        expected = sorted(theirs.get_executions_by_context(context.id), key=lambda execution: execution.id)
        assert [(n.id, n.node, n.state, n.started, n.updated, n.properties["fingerprint"]) for n in run.nodes] == [
            (
                execution.id,
                execution.type,
                mlmd_pb2.Execution.State.Name(execution.last_known_state),
                execution.create_time_since_epoch,
                execution.last_update_time_since_epoch,
                execution.custom_properties["fingerprint"].string_value,
            )
            for execution in expected
        ]
        assert run.pushed_version == str(int(run.id.removeprefix("taxi-")))
        assert (run.pipeline, run.state) == ("taxi", "COMPLETE")


def test_artifacts_are_those_of_mlmd_with_their_first_producers(synthetic: Connection) -> None:
    theirs = mlmd.MetadataStore(synthetic)
    for type_name in ("Schema", "PushedModel"):
        expected = sorted(theirs.get_artifacts_by_type(type_name), key=lambda artifact: -artifact.id)
        ours = opened(synthetic).artifacts(type_name, limit=100)
        assert [(a.artifact.id, a.artifact.uri, a.artifact.type) for a in ours] == [
            (artifact.id, artifact.uri, type_name) for artifact in expected
        ]
        for entry in ours:
            events = theirs.get_events_by_artifact_ids([entry.artifact.id])
            assert entry.execution == min(e.execution_id for e in events if e.type == mlmd_pb2.Event.OUTPUT)
            contexts = {c.type: c.name for c in theirs.get_contexts_by_execution(entry.execution)}
            assert entry.place is not None
            assert (f"taxi.{entry.place.node}", entry.place.run) == (contexts["node"], contexts["pipeline_run"])
    assert len(opened(synthetic).artifacts("Schema", limit=100)) == 20


def test_pages_follow_each_other_without_a_gap(synthetic: Connection) -> None:
    store = opened(synthetic)
    first = store.runs("taxi", limit=12)
    second = store.runs("taxi", limit=12, before=first[-1].number)
    third = store.runs("taxi", limit=12, before=second[-1].number)
    assert [run.id for run in [*first, *second, *third]] == [f"taxi-{index:05}" for index in reversed(range(30))]
    artifacts = store.artifacts(limit=3)
    following = store.artifacts(limit=3, before=artifacts[-1].artifact.id)
    numbers = [entry.artifact.id for entry in [*artifacts, *following]]
    assert numbers == list(range(numbers[0], numbers[0] - 6, -1))


def test_a_long_page_is_read_in_parts(synthetic: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_AT_ONCE", 4)
    store = opened(synthetic)
    assert [run.id for run in store.runs(limit=10)] == [f"taxi-{index:05}" for index in range(29, 19, -1)]
    assert [run.id for run in store.runs(limit=99)] == store.all_run_ids()


def test_a_page_asks_about_its_own_rows_alone(synthetic: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    call = mlmd.MetadataStore._call_method

    def counting(self: mlmd.MetadataStore, name: str, request: object, response: object) -> None:
        asked.append(name)
        call(self, name, request, response)

    monkeypatch.setattr(mlmd.MetadataStore, "_call_method", counting)

    def asked_by(page: Callable[[Queries], object]) -> Counter[str]:
        store = opened(synthetic)
        asked.clear()
        page(store)
        return Counter(asked)

    one, nine = (asked_by(lambda store, n=limit: store.runs(limit=n, before=25)) for limit in (1, 9))
    assert nine - one == {"GetExecutionsByContext": 8, "GetParentContextsByContext": 8}
    # One call for each of ten nodes, one for the run, and for the runs, the nodes, and the outputs of Pushers.
    assert one.total() <= 16
    one, nine = (asked_by(lambda store, n=limit: store.artifacts("Model", n)) for limit in (1, 9))
    assert nine - one == {"GetContextsByExecution": 8}
    assert one == {"GetArtifactsByType": 1, "GetEventsByArtifactIDs": 1, "GetContextsByExecution": 1}
    assert asked_by(Queries.deployed) == one


def test_the_state_of_a_run_comes_from_its_nodes(places: Environment, builder: StoreBuilder) -> None:
    builder.run("empty")
    for run_id, states in {
        "done": ["CACHED", "COMPLETE"],
        "failed": ["COMPLETE", "FAILED", "RUNNING"],
        "stopped": ["COMPLETE", "CANCELED"],
        "running": ["COMPLETE", "RUNNING"],
    }.items():
        builder.run(run_id)
        for node, state in zip(("ExampleGen", "Trainer", "Pusher"), states, strict=False):
            builder.node(node, state)
    by_id = {run.id: run for run in opened(places).runs()}
    assert {run_id: run.state for run_id, run in by_id.items()} == {
        "empty": "NEW",
        "done": "COMPLETE",
        "failed": "FAILED",
        "stopped": "CANCELED",
        "running": "RUNNING",
    }
    assert by_id["running"].ended is None
    assert by_id["empty"].ended is None
    assert by_id["done"].ended == max(node.updated for node in by_id["done"].nodes)
    assert by_id["empty"].pipeline == "small"


def test_a_retried_node_counts_with_its_last_execution(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer", "FAILED")
    other = builder.node("SchemaGen")
    second = builder.node("Trainer")
    run = opened(places).run("one")
    assert run is not None
    assert [(node.id, node.node, node.state) for node in run.nodes] == [
        (other, "SchemaGen", "COMPLETE"),
        (second, "Trainer", "COMPLETE"),
    ]


def test_runs_of_a_pipeline_alone(places: Environment, builder: StoreBuilder) -> None:
    builder.run("ours")
    StoreBuilder(Workplace(places).connection, places.pipeline_root, "other").run("theirs")
    store = opened(places)
    assert [run.id for run in store.runs("small")] == ["ours"]
    assert [run.id for run in store.runs()] == ["theirs", "ours"]
    assert store.runs("none") == []
    assert store.run("none") is None
    assert store.all_run_ids() == ["theirs", "ours"]


def test_deployed_is_the_highest_version_rollbacks_included(places: Environment, builder: StoreBuilder) -> None:
    def pushed(version: int, **more: str | int) -> int:
        destination = f"/serving/small/{version}"
        properties = {"pushed": 1, "pushed_destination": destination, "pushed_version": str(version)}
        return builder.artifact("PushedModel", **properties, **more)

    builder.run("one")
    builder.node("Pusher", outputs={"pushed_model": pushed(9, current_model_id=7)})
    builder.run("two")
    builder.node("Pusher", outputs={"pushed_model": builder.artifact("PushedModel", pushed=0)})
    store = opened(places)
    [served] = store.deployed()
    assert (served.folder, served.version, served.model, served.restored) == ("/serving/small", "9", 7, None)
    assert served.pushed_by == Place("small", "one", "Pusher")
    builder.run("three")
    builder.node("Pusher", outputs={"pushed_model": pushed(10, current_model_id=8)})
    rolled_back = pushed(11, current_model_id=7, rolled_back_from=10, restored_version=9)
    builder.node("Rollback", outputs={"pushed_model": rolled_back})
    [served] = store.deployed()
    assert (served.version, served.pushed.id, served.model, served.restored) == ("11", rolled_back, 7, "9")
    assert served.pushed_by is not None
    assert served.pushed_by.node == "Rollback"


def test_artifacts_by_where_they_lie(places: Environment, builder: StoreBuilder) -> None:
    odd = builder.artifact("Model", "/data/it's a \\ model")
    pushed = builder.artifact("PushedModel", "/data/pushed", pushed=1, pushed_destination="/serving/small/1")
    store = opened(places)
    assert [entry.artifact.id for entry in store.artifacts_at("/data/it's a \\ model")] == [odd]
    assert [entry.artifact.id for entry in store.artifacts_at("/serving/small/1")] == [pushed]
    assert store.artifacts_at("/elsewhere") == []
    assert store.artifact_types() == ["Model", "PushedModel"]
    assert store.artifacts_by_id([999]) == []


def test_reading_goes_on_while_a_run_is_in_a_transaction(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    StoreBuilder(path, tmp_path).run("first")
    file = connections.sqlite(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE Context SET name = 'renamed' WHERE name = 'first'")
        assert [run.id for run in opened(file).runs()] == ["first"]
        writer.execute("COMMIT")
    assert [run.id for run in opened(file).runs()] == ["renamed"]
