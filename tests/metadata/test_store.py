"""Queries of the metadata store."""

from __future__ import annotations

from pathlib import Path

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from metadata.store import NodeRun, Store
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace


def opened(places: Environment) -> Store:
    store = Store.open(Workplace(places).connection)
    assert store is not None
    return store


def test_there_is_no_store_before_the_first_run(tmp_path: Path) -> None:
    assert Store.open_sqlite(tmp_path / "none.sqlite") is None
    (tmp_path / "empty.sqlite").touch()
    assert Store.open_sqlite(tmp_path / "empty.sqlite") is None


def test_an_empty_store_returns_nothing(places: Environment, builder: StoreBuilder) -> None:
    store = opened(places)
    assert store.run_ids("small") == []
    assert store.run_ids("other") == []
    assert store.node_runs("small", "none") == {}
    assert store.history("small", "Trainer") == []
    assert store.producer(1) is None
    assert store.inputs(1) == {}


def test_runs_are_those_of_the_pipeline_newest_first(places: Environment, builder: StoreBuilder) -> None:
    builder.run("b-first")
    builder.run("a-second")
    StoreBuilder(Workplace(places).connection, places.pipeline_root, "other").run("foreign")
    assert opened(places).run_ids("small") == ["a-second", "b-first"]


def test_node_runs_are_those_of_the_run_by_node(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer")
    builder.run("two")
    generated = builder.node("ExampleGen", "CACHED")
    trained = builder.node("Trainer", "RUNNING")
    node_runs = opened(places).node_runs("small", "two")
    assert {node: (run.id, run.node, run.state) for node, run in node_runs.items()} == {
        "ExampleGen": (generated, "ExampleGen", "CACHED"),
        "Trainer": (trained, "Trainer", "RUNNING"),
    }
    assert list(node_runs) == ["ExampleGen", "Trainer"]
    assert all(0 < run.started <= run.updated for run in node_runs.values())


def test_pipelines_whose_names_begin_alike_are_kept_apart(places: Environment, builder: StoreBuilder) -> None:
    longer = StoreBuilder(Workplace(places).connection, places.pipeline_root, "smaller")
    longer.run("one")
    longer.node("Trainer")
    assert opened(places).history("small", "Trainer") == []
    assert opened(places).node_runs("small", "one") == {}


def test_a_retried_node_counts_with_its_last_execution(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer", "FAILED")
    second = builder.node("Trainer")
    assert opened(places).node_runs("small", "one")["Trainer"].id == second


def test_history_is_newest_first(places: Environment, builder: StoreBuilder) -> None:
    ids = []
    for run_id, state in (("one", "COMPLETE"), ("two", "FAILED"), ("three", "CACHED")):
        builder.run(run_id)
        ids.append(builder.node("Trainer", state))
    assert [(run.id, run.state) for run in opened(places).history("small", "Trainer")] == [
        (ids[2], "CACHED"),
        (ids[1], "FAILED"),
        (ids[0], "COMPLETE"),
    ]


def test_the_latest_runs_of_a_node_are_the_beginning_of_its_history(
    places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metadata.store.READ_AT_ONCE", 2)
    for number, state in enumerate(("COMPLETE", "FAILED", "CACHED", "RUNNING", "COMPLETE", "CANCELED")):
        builder.run(f"run-{number}")
        builder.node("Trainer", state)
        builder.node("Pusher", state)
    store = opened(places)
    history = store.history("small", "Trainer")
    assert len(history) == 6
    assert list(store.latest("small", "Trainer")) == history
    assert list(store.latest("small", "Trainer", until=history[2].id)) == history[2:]
    assert list(store.latest("small", "Trainer", succeeded=True)) == [run for run in history if run.succeeded]
    assert list(store.latest("small", "Evaluator")) == []


def test_inputs_and_outputs_by_name(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    examples = builder.artifact("Examples", "/data/examples", span=3, split_names='["train"]', ratio=0.5)
    model = builder.artifact("Model", "/data/model")
    trained = builder.node("Trainer", inputs={"examples": examples}, outputs={"model": model})
    store = opened(places)
    [record] = store.inputs(trained)["examples"]
    assert (record.id, record.type, record.uri, record.state) == (examples, "Examples", "/data/examples", "LIVE")
    assert record.properties == {"span": 3, "split_names": '["train"]', "ratio": 0.5}
    assert record.created > 0
    assert {name: [a.id for a in artifacts] for name, artifacts in store.outputs(trained).items()} == {"model": [model]}


def test_several_artifacts_of_one_name(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    first, second = builder.artifact("Examples"), builder.artifact("Examples")
    merged = builder.node("Trainer", inputs={"examples": first})
    builder.link(merged, mlmd_pb2.Event.INPUT, {"examples": second})
    assert [artifact.id for artifact in opened(places).inputs(merged)["examples"]] == [first, second]


def test_the_producer_is_the_first_execution_that_output_it(places: Environment, builder: StoreBuilder) -> None:
    model = builder.artifact("Model")
    builder.run("one")
    first = builder.node("Trainer", outputs={"model": model})
    builder.run("two")
    cached = builder.node("Trainer", "CACHED", outputs={"model": model})
    store = opened(places)
    assert store.producer(model) == first
    assert (store.run_of(first), store.run_of(cached)) == ("one", "two")


@pytest.mark.parametrize(
    ("state", "succeeded"),
    [("COMPLETE", True), ("CACHED", True), ("FAILED", False), ("CANCELED", False), ("RUNNING", False), ("NEW", False)],
)
def test_which_states_are_successes(state: str, succeeded: bool) -> None:
    assert NodeRun(1, "Trainer", state, 0, 0, {}).succeeded == succeeded


def test_seconds_are_from_start_to_last_update() -> None:
    assert NodeRun(1, "Trainer", "COMPLETE", 1_500, 4_000, {}).seconds == 2.5


def test_reading_changes_nothing_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    builder = StoreBuilder(path, tmp_path)
    builder.run("one")
    builder.node("Trainer")
    before = path.read_bytes()
    store = Store.open_sqlite(path)
    assert store is not None
    assert list(store.node_runs("small", "one")) == ["Trainer"]
    assert path.read_bytes() == before
