"""A search by state finds exactly the runs in that state, on an SQLite file and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import ml_metadata as mlmd
import postgres
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from metadata import connection as connections
from metadata import searching
from metadata.queries import PAGE, Queries
from metadata.records import RunRecord

Connection = mlmd_pb2.ConnectionConfig

NODES = ("ExampleGen", "Trainer", "Pusher")
RUNS = (
    ("COMPLETE", "CACHED", "COMPLETE"),
    ("CACHED", "FAILED"),
    ("FAILED", "COMPLETE", "COMPLETE"),
    ("COMPLETE", "CANCELED"),
    (),
    ("COMPLETE", "RUNNING"),
    ("NEW",),
    ("FAILED", "RUNNING"),
    ("COMPLETE", "COMPLETE", "CANCELED"),
)
"""The nodes' states in each run; in half the runs, nodes that failed or were stopped run again."""

COUNT = 36


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def varied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """A store with runs of two pipelines, of every kind."""
    folder = tmp_path_factory.mktemp("varied")
    if request.param == "sqlite":
        connection = connections.sqlite(folder / "metadata.sqlite")
    else:
        server = request.getfixturevalue("postgres_server").new_database()
        connection = connections.postgresql(server.host, server.port, server.database, server.user, postgres.PASSWORD)
    builders = [StoreBuilder(connection, folder, name) for name in ("small", "other")]
    for number, states in zip(range(COUNT), cycle(RUNS), strict=False):
        builder = builders[number // 3 % 2]
        builder.run(f"run-{number:02}")
        # Some runs are partial, without an ExampleGen.
        for node, state in zip(NODES[number % 4 == 0 :], states, strict=False):
            builder.node(node, state)
            if state in {"FAILED", "CANCELED"} and number % 2:
                builder.node(node)
    return connection


def opened(connection: Connection) -> Queries:
    store = Queries.open(connection, lambda _pipeline, run, _node: int(run[-2:]) % 2 == 0)
    assert store is not None
    return store


def all_pages(store: Queries, kind: str | None, pipeline: str | None) -> list[RunRecord]:
    """The runs on all pages."""
    runs, before = searching.find_runs(store, kind, pipeline)
    while before is not None:
        page, before = searching.find_runs(store, kind, pipeline, before)
        runs += page
    return runs


@pytest.mark.parametrize("pipeline", [None, "small"])
@pytest.mark.parametrize("kind", searching.KINDS)
def test_a_search_finds_the_runs_in_the_state(
    varied: Connection, kind: str, pipeline: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(varied)
    expected = [run for run in store.runs(pipeline, limit=COUNT) if run.state in searching.KINDS[kind]]
    assert len(expected) > 1
    assert searching.find_runs(store, kind, pipeline) == (expected[:PAGE], None)
    monkeypatch.setattr(searching, "PAGE", 2)
    monkeypatch.setattr(searching, "SEARCHED_AT_ONCE", 9)
    monkeypatch.setattr(searching, "MOST_SEARCHED", 18)
    assert all_pages(store, kind, pipeline) == expected


def test_where_many_are_read_and_few_match_the_next_page_continues(
    varied: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "PAGE", 1)
    monkeypatch.setattr(searching, "MOST_READ", 1)
    store = opened(varied)
    first, before = searching.find_runs(store, "done")
    assert (first, before) == (store.runs(limit=1), store.runs(limit=2)[-1].number)
    assert all_pages(store, "done", None) == [run for run in store.runs(limit=COUNT) if run.state == "COMPLETE"]


def test_every_run_is_of_one_kind(varied: Connection) -> None:
    runs = opened(varied).runs(limit=COUNT)
    assert len(runs) == COUNT
    assert {run.state for run in runs} == set().union(*searching.KINDS.values())
    assert all_pages(opened(varied), None, None) == runs


def test_a_search_stops_at_its_limit_and_says_where_to_continue(
    varied: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SEARCHED_AT_ONCE", 3)
    monkeypatch.setattr(searching, "MOST_SEARCHED", 6)
    store = opened(varied)
    runs, before = searching.find_runs(store, "failed", None)
    sixth = store.runs(limit=6)[-1]
    assert before == sixth.number
    assert [run.number for run in runs] == [r.number for r in store.runs(limit=6) if r.state == "FAILED"]


def test_runs_that_cannot_match_are_not_read(varied: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = mlmd.MetadataStore(varied)
    failed = {
        context.name
        for context in theirs.get_contexts_by_type("pipeline_run")
        for execution in theirs.get_executions_by_context(context.id)
        if execution.last_known_state == mlmd_pb2.Execution.FAILED
    }
    original, names = Queries.run_records, []

    def reading(self: Queries, contexts: Sequence[mlmd_pb2.Context]) -> list[RunRecord]:
        names.extend(context.name for context in contexts)
        return original(self, contexts)

    monkeypatch.setattr(Queries, "run_records", reading)
    searching.find_runs(opened(varied), "failed")
    assert set(names) == failed
    assert 2 < len(names) < COUNT / 2
