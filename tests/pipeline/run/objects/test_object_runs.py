"""Commands and runs in an environment whose artifacts are in a bucket."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from object_server import ObjectServer
from store_builder import StoreBuilder

from components.pusher import versions
from components.pusher.manifest import Origin
from components.trainer.settings import TrainerSettings
from contracts.errors import SettingsError
from contracts.evaluation import SUMMARY_FILE, Summary
from metadata.queries import Queries
from pipeline import cli
from pipeline.plan import environment as environments
from pipeline.plan import fingerprint, recipe
from pipeline.plan.environment import Environment
from pipeline.run import local, rollback, run_summary
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import tasks, training
from ui.dashboard import files

SUMMARY = {"blessed": True, "rows": 100, "metrics": [{"name": "AUC", "value": 0.75}], "slices": []}


@pytest.fixture
def places(object_environment: Callable[..., str]) -> Environment:
    """An environment whose artifacts are in a bucket."""
    return environments.load(object_environment("here"))


def sent(places: Environment, node: str, files: dict[str, str]) -> str:
    """Puts an artifact into the bucket, and nothing of it on this machine; returns its URI."""
    uri = f"{places.object_root}/small/{node}/made/1"
    mirror = Workplace(places).mirror
    assert mirror
    for name, content in files.items():
        path = mirror.path_of(uri) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    mirror.upload(uri)
    mirror.path_of(uri).rename(places.log_root.parent / f"sent-{node}")
    return uri


def queries(places: Environment) -> Queries:
    store = Workplace(places).open_store()
    assert store
    return store


def test_a_run_whose_artifacts_are_all_there_is_up_to_date(
    project: Path, places: Environment, builder: StoreBuilder, object_server: ObjectServer
) -> None:
    small = recipe.load("small")
    prints = fingerprint.fingerprints(small, places, small.find_inputs())
    builder.run("small-1")
    uris = [sent(places, node, {"file": node}) for node in prints]
    for node, uri in zip(prints, uris, strict=True):
        builder.node(node, fingerprint=prints[node], outputs={"made": builder.artifact("Examples", uri)})
    object_server.requests.clear()
    request = Request(recipe="small", overrides=(), environment="here", run_id="small-2", span=None)
    context = RunContext(small, Workplace(places), small.find_inputs(), request)
    current = local.up_to_date(context, prints)
    assert current is not None
    assert current.id == "small-1"
    assert len(object_server.requests) == len(prints)
    object_server.remove(uris[3].removeprefix("s3://"))
    assert local.up_to_date(context, prints) is None


def test_the_result_of_a_run_is_read_from_the_bucket(places: Environment, builder: StoreBuilder) -> None:
    builder.run("small-1")
    evaluation = sent(places, "Evaluator", {SUMMARY_FILE: json.dumps(SUMMARY), "predictions.npz": "large"})
    rejected = sent(places, "ExampleGen", {"rejected-0.jsonl": ""})
    builder.node("ExampleGen", outputs={"rejected_rows": builder.artifact("RejectedRows", rejected, num_rows=2)})
    model = builder.artifact("Model", sent(places, "Trainer", {"model": "…"}))
    builder.node("Evaluator", inputs={"model": model}, outputs={"evaluation": builder.artifact("E", evaluation)})
    store = queries(places)
    result = run_summary.read_run_summary(store, store.node_runs("small", "small-1"))
    assert result.evaluation == Summary.model_validate(SUMMARY)
    # Locations are shown as users know them, and only what is shown is downloaded.
    assert result.notes == (f"Set aside  2 rows, with the reason for each, in {rejected}",)
    assert [path.name for path in places.pipeline_root.rglob("*") if path.is_file()] == [SUMMARY_FILE]
    assert rollback._metrics_by_model("small", store) == {model: {"AUC": 0.75}}


def test_the_dashboard_lists_a_large_artifact_without_downloading_it(
    places: Environment, builder: StoreBuilder
) -> None:
    uri = sent(places, "ExampleGen", {"Split-train/data.gz": "rows", "notes.json": "{}"})
    number = builder.artifact("Examples", uri)
    [entry] = queries(places).artifacts_by_id([number])
    listing = files.listing_of(entry.artifact)
    assert listing
    assert [(file.path, file.bytes) for file in listing.files] == [("Split-train/data.gz", 4), ("notes.json", 2)]
    assert not places.pipeline_root.joinpath("ExampleGen").exists()
    assert not list(places.pipeline_root.rglob("*.*"))
    for path in ("../1/notes.json", "/etc/hosts", "none.json", "Split-train", "a\0b"):
        assert files.file_of(entry.artifact, path) is None
    opened = files.file_of(entry.artifact, "notes.json")
    assert opened
    assert opened.read_text() == "{}"
    assert not list(places.pipeline_root.rglob("*.gz"))
    assert entry.artifact.path.joinpath("Split-train", "data.gz").read_text() == "rows"
    assert files.file_of(entry.artifact, "Split-train") is None


def test_an_artifact_is_found_by_its_uri(
    places: Environment, builder: StoreBuilder, object_environment: Callable[..., str]
) -> None:
    builder.run("small-1")
    uri = sent(places, "ExampleGen", {"file": ""})
    builder.node("ExampleGen", outputs={"examples": builder.artifact("Examples", uri)})
    result = CliRunner().invoke(cli.main, ["lineage", f"{uri}/", "--env", object_environment("here")])
    assert result.stdout.splitlines()[0] == f"Examples 1  {uri}"


def test_a_rollback_is_recorded_in_the_bucket(
    places: Environment, builder: StoreBuilder, object_server: ObjectServer, tmp_path: Path
) -> None:
    base = places.serving_root / "small"
    for number in (1, 2):
        model = tmp_path / f"model-{number}"
        (model / "variables").mkdir(parents=True)
        (model / "saved_model.pb").write_text(f"{number}")
        versions.push_version(
            model, base, 3, Origin(model_id=number, model_uri=f"{places.object_root}/m", run_id="one")
        )
    done = rollback.roll_back("small", Workplace(places))
    [pushed] = queries(places).pushed()
    assert pushed.uri == f"{places.object_root}/small/Rollback/pushed_model/{done.path.name}"
    assert pushed.properties["current_model"] == f"{places.object_root}/m"
    [content] = object_server.objects(pushed.uri.removeprefix("s3://")).values()
    assert json.loads(content)["restored_version"] == done.restored


def in_pods(places: Environment, **objects: Path) -> Environment:
    """The example cluster with this pipeline root."""
    cluster = environments.load("kubeflow")
    assert places.object_store
    folders = {name: getattr(cluster, name) for name in ("metadata_store", "serving_root", "log_root", "kubeflow")}
    return places.model_copy(update=folders | {"object_store": places.object_store.model_copy(update=objects)})


def test_pods_mount_no_volume_for_a_bucket(places: Environment) -> None:
    assert tasks.check_environment(in_pods(places), "kubeflow").volumes[0].path == "/mnt/millrace"


def test_pods_that_train_together_share_the_cache(places: Environment) -> None:
    several = TrainerSettings(epochs=1, workers=2)
    own, shared = in_pods(places), in_pods(places, cache=Path("/mnt/millrace/cache"))
    assert own.kubeflow
    assert own.object_store
    with pytest.raises(SettingsError) as caught:
        training.check_shared_files(several, own, own.kubeflow)
    assert str(caught.value) == (
        f"the Trainer trains in several pods, and takes the artifacts of {places.object_root} from "
        f"{own.object_store.cache}, which is on no volume that all of them mount (/mnt/millrace).\n"
        "Give object_store.cache a folder below one of `kubeflow.volumes`."
    )
    training.check_shared_files(several, shared, own.kubeflow)
    training.check_shared_files(TrainerSettings(epochs=1), own, own.kubeflow)
