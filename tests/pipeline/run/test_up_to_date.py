"""When a run has nothing to do."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from rich.console import Console
from store_builder import StoreBuilder

from components.example_gen import files
from components.pusher import manifest
from contracts.errors import SettingsError
from metadata.files import described, local_sizes
from metadata.store import Store
from pipeline.plan import fingerprint, nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint
from pipeline.plan.recipe import Recipe
from pipeline.run import local, progress
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace

Prints = dict[str, Fingerprint]
RunAsking = Callable[[str], local.Run]


@pytest.fixture
def prints(project: Path, places: Environment, small: Recipe) -> Prints:
    return fingerprint.fingerprints(small, places, files.resolve(small.settings.data, project))


@pytest.fixture
def with_tflite(project: Path, places: Environment) -> Prints:
    """The fingerprints with a TF Lite model."""
    asking = recipe.load("small", ["tflite.quantization=int8"])
    return fingerprint.fingerprints(asking, places, asking.find_inputs())


@pytest.fixture
def run_asking(project: Path, places: Environment) -> RunAsking:
    """Runs `small` from a node on, with a TF Lite model."""
    asking = recipe.load("small", ["tflite.quantization=int8"])

    def run(from_node: str) -> local.Run:
        view = progress.View(Console(file=io.StringIO()), "small", nodes.names(asking))
        request = Request(
            recipe="small", overrides=(), environment="local", run_id="small-1", span=None, from_node=from_node
        )
        return local.run(RunContext(asking, Workplace(places), asking.find_inputs(), request), view)

    return run


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    folder = tmp_path / "serving" / "small" / "17"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables").mkdir()
    (folder / "variables" / "data").write_text("numbers")
    files = manifest.files_of(folder)
    origin = manifest.Origin(model_id=1, model_uri="/model", run_id="one")
    now = datetime(2024, 2, 29, tzinfo=timezone.utc)
    manifest.write_manifest(folder, manifest.Manifest(version=17, pushed=now, files=files, origin=origin))
    return folder


def whole_run(builder: StoreBuilder, prints: Prints, run_id: str, pushed: Path, state: str = "COMPLETE") -> None:
    """A run in which every node ended, the Trainer with `state`."""
    builder.run(run_id)
    for node in (*prints, nodes.BASELINE_NODE):
        properties = {"pushed_destination": str(pushed)} if node == "Pusher" else {}
        output = builder.artifact(f"{node}Output", **properties)
        builder.node(node, state if node == "Trainer" else "COMPLETE", prints.get(node), outputs={"output": output})


def up_to_date(small: Recipe, places: Environment, prints: Prints) -> local.Run | None:
    """The run that already did the work of a run whose nodes have these fingerprints."""
    request = Request(recipe="small", overrides=(), environment="local", run_id="next", span=None)
    return local.up_to_date(RunContext(small, Workplace(places), small.find_inputs(), request), prints)


def outputs_of(places: Environment, run_id: str, node: str) -> Path:
    store = Store.open_sqlite(places.metadata_path)
    assert store is not None
    return Path(store.outputs(store.node_runs("small", run_id)[node].id)["output"][0].uri)


def test_nothing_is_up_to_date_without_a_store(small: Recipe, places: Environment, prints: Prints) -> None:
    assert up_to_date(small, places, prints) is None


def test_nothing_is_up_to_date_before_the_first_run(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder
) -> None:
    assert up_to_date(small, places, prints) is None


@pytest.mark.parametrize("state", ["COMPLETE", "CACHED"])
def test_a_whole_run_is_up_to_date(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder, pushed: Path, state: str
) -> None:
    whole_run(builder, prints, "one", pushed, state)
    run = up_to_date(small, places, prints)
    assert run is not None
    assert (run.id, run.new) == ("one", False)
    assert set(run.nodes) == set(nodes.names(small))


def test_with_a_tf_lite_model_too_and_neither_does_for_the_other(
    small: Recipe, places: Environment, prints: Prints, with_tflite: Prints, builder: StoreBuilder, pushed: Path
) -> None:
    whole_run(builder, with_tflite, "one", pushed)
    run = up_to_date(small, places, with_tflite)
    assert run is not None
    assert set(run.nodes) == set(nodes.NODES)
    assert up_to_date(small, places, prints) is None
    whole_run(builder, prints, "two", pushed)
    assert up_to_date(small, places, prints) is not None
    assert up_to_date(small, places, with_tflite) is None


@pytest.mark.parametrize("state", ["FAILED", "CANCELED", "RUNNING"])
def test_a_node_that_did_not_succeed_must_run_again(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder, pushed: Path, state: str
) -> None:
    whole_run(builder, prints, "one", pushed, state)
    assert up_to_date(small, places, prints) is None


@pytest.mark.parametrize("node", ["ExampleGen", "Trainer", "Pusher"])
def test_another_fingerprint_must_run_again(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder, pushed: Path, node: str
) -> None:
    whole_run(builder, prints, "one", pushed)
    assert up_to_date(small, places, {**prints, node: Fingerprint(settings={"a": 1})}) is None


def test_outputs_that_are_gone_must_be_made_again(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder, pushed: Path
) -> None:
    whole_run(builder, prints, "one", pushed)
    shutil.rmtree(outputs_of(places, "one", "Transform"))
    assert up_to_date(small, places, prints) is None


def test_outputs_of_which_a_file_is_gone_must_be_made_again(
    small: Recipe,
    places: Environment,
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    started: list[str],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "graph"
    folder.mkdir()
    for name in ("saved_model.pb", "schema.pbtxt"):
        (folder / name).write_text("12345")
    whole_run(builder, prints, "one", pushed)
    graph = builder.artifact("TransformGraph", folder, written=described(local_sizes(folder)))
    builder.node("Transform", "COMPLETE", prints["Transform"], outputs={"transform_graph": graph})
    assert up_to_date(small, places, prints) is not None
    (folder / ".DS_Store").touch()
    assert up_to_date(small, places, prints) is not None

    (folder / "schema.pbtxt").unlink()
    assert up_to_date(small, places, prints) is None
    output = io.StringIO()
    view = progress.View(Console(file=output), "small", nodes.NODES)
    request = Request(recipe="small", overrides=(), environment="local", run_id="small-1", span=None)
    local.run(RunContext(small, Workplace(places), small.find_inputs(), request), view)
    assert output.getvalue() == (
        f"{folder} has 1 files, 5 bytes, and its node wrote 2 files, 10 bytes: "
        "Transform does not take it from the cache.\n"
    )
    assert started == ["small-1"]


@pytest.mark.parametrize(
    ("file", "what"), [(".", "is gone"), ("variables/data", "lacks variables/data")], ids=["gone", "in part"]
)
def test_a_pushed_model_that_is_gone_must_be_pushed_again(
    small: Recipe,
    places: Environment,
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    started: list[str],
    file: str,
    what: str,
) -> None:
    whole_run(builder, prints, "one", pushed)
    shutil.rmtree(pushed) if file == "." else (pushed / file).unlink()
    assert up_to_date(small, places, prints) is None
    output = io.StringIO()
    view = progress.View(Console(file=output, width=500), "small", nodes.NODES)
    request = Request(recipe="small", overrides=(), environment="local", run_id="small-1", span=None)
    local.run(RunContext(small, Workplace(places), small.find_inputs(), request), view)
    assert output.getvalue() == f"{pushed} {what}: the Pusher pushes again.\n"
    assert started == ["small-1"]


def test_only_the_latest_run_counts(
    small: Recipe, places: Environment, prints: Prints, builder: StoreBuilder, pushed: Path
) -> None:
    whole_run(builder, prints, "one", pushed)
    builder.run("two")
    builder.node("ExampleGen", "COMPLETE", prints["ExampleGen"])
    assert up_to_date(small, places, prints) is None


@pytest.mark.parametrize(
    ("changes", "starts"),
    [({}, False), ({"force": True}, True), ({"from_node": "Trainer"}, True), ({"to_node": "Trainer"}, True)],
)
def test_what_is_up_to_date_is_run_only_when_told_to(
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    run_small: Callable[..., local.Run],
    started: list[str],
    changes: dict[str, object],
    starts: bool,
) -> None:
    whole_run(builder, prints, "one", pushed)
    run = run_small(**changes)
    assert (run.new, len(started)) == (starts, int(starts))


def test_what_is_up_to_date_is_not_checked_again_but_a_forced_run_is(
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    run_small: Callable[..., local.Run],
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole_run(builder, prints, "one", pushed)
    checked: list[str] = []
    monkeypatch.setattr(local.preflight, "check", lambda small, _inputs: checked.append(small.name))
    run_small()
    assert checked == []
    run_small(force=True)
    assert (checked, len(started)) == (["small"], 1)


def test_from_needs_an_earlier_run(run_small: Callable[..., local.Run], started: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        run_small(from_node="Trainer")
    assert str(caught.value) == (
        "--from Trainer takes what comes before it from the last run, and small has not run yet.\n"
        "Run it without --from first."
    )
    assert started == []


def test_from_needs_what_comes_before_it_to_have_succeeded_in_the_last_run(
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    places: Environment,
    run_small: Callable[..., local.Run],
    started: list[str],
) -> None:
    whole_run(builder, prints, "one", pushed)
    builder.run("two")
    for node, state in {"ExampleGen": "COMPLETE", "SchemaGen": "CACHED", "StatisticsGen": "FAILED"}.items():
        builder.node(node, state, prints[node])
    with pytest.raises(SettingsError) as caught:
        run_small(from_node="Transform")
    assert str(caught.value) == (
        "--from Transform takes what comes before it from the last run, and run two has no result of "
        "StatisticsGen, ExampleValidator, DataGate.\n"
        "Run it without --from: what has not changed is taken from the cache."
    )
    assert started == []
    run_small(from_node="StatisticsGen")
    assert started == ["small-1"]


def test_from_needs_the_files_of_what_comes_before_it(
    prints: Prints,
    builder: StoreBuilder,
    pushed: Path,
    places: Environment,
    run_small: Callable[..., local.Run],
    started: list[str],
) -> None:
    whole_run(builder, prints, "one", pushed)
    shutil.rmtree(outputs_of(places, "one", "Trainer"))
    with pytest.raises(SettingsError, match="run one has no result of Trainer"):
        run_small(from_node="Evaluator")
    run_small(from_node="Transform")
    assert started == ["small-1"]


def test_a_served_model_without_files_is_named_and_stops_nothing(
    builder: StoreBuilder, places: Environment, small: Recipe, started: list[str]
) -> None:
    version = places.serving_root / "small" / "17"
    version.mkdir(parents=True)
    model = builder.artifact("Model")
    builder.artifact(
        "PushedModel", pushed=1, pushed_version="17", pushed_destination=str(version), current_model_id=model
    )
    folder = places.pipeline_root / "small" / "artifacts" / "0"

    def run() -> str:
        output = io.StringIO()
        view = progress.View(Console(file=output), "small", nodes.NODES)
        request = Request(recipe="small", overrides=(), environment="local", run_id="small-1", span=None)
        local.run(RunContext(small, Workplace(places), small.find_inputs(), request), view)
        return output.getvalue()

    assert run() == ""
    folder.rmdir()
    assert run() == (f"{folder} is gone: the candidate is not compared with the served model, version 17.\n")
    version.rmdir()
    assert run() == ""
    assert len(started) == 3


def test_from_a_node_after_the_tf_lite_model_needs_a_run_that_made_one(
    prints: Prints, with_tflite: Prints, builder: StoreBuilder, pushed: Path, run_asking: RunAsking, started: list[str]
) -> None:
    whole_run(builder, prints, "one", pushed)
    with pytest.raises(SettingsError) as caught:
        run_asking("Pusher")
    assert str(caught.value) == (
        "--from Pusher takes what comes before it from the last run, and run one has no result of TFLite.\n"
        "Run it without --from: what has not changed is taken from the cache."
    )
    assert started == []
    for node in ("TFLite", "Trainer"):
        run_asking(node)
    whole_run(builder, with_tflite, "two", pushed)
    run_asking("Pusher")
    assert len(started) == 3
