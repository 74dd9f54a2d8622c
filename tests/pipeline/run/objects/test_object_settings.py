"""What an environment may say about an object store, and where files are kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import environment
from pipeline.run import lock
from pipeline.run.objects.mirror import Mirror
from pipeline.run.workplace import Workplace

MINIMAL = """\
metadata_store: {sqlite: a/metadata.sqlite}
pipeline_root: s3://my-bucket/team/pipelines
serving_root: a/serving
log_root: a/logs
"""
CLUSTER = "job_endpoint: jobs:8099"


def load(folder: Path, text: str) -> environment.Environment:
    file = folder / "mine.yaml"
    file.write_text(text)
    return environment.load(str(file))


def test_the_cache_lies_in_the_project_and_what_is_locked_in_folders(project: Path, tmp_path: Path) -> None:
    loaded = load(tmp_path, MINIMAL)
    assert str(loaded.object_root) == "s3://my-bucket/team/pipelines"
    assert loaded.pipeline_root == project / "artifacts/objects/s3/my-bucket/team/pipelines"
    assert loaded.state_root == project / "a/logs/.state"
    assert loaded.object_store
    assert (loaded.object_store.endpoint, loaded.object_store.region) == (None, None)
    with lock.held("small", loaded):
        assert (project / "a/logs/.state/small/.lock").exists()
    assert not (project / "artifacts").exists()


def test_a_store_of_ones_own(project: Path, tmp_path: Path) -> None:
    store = "object_store: {endpoint: 'http://minio.minio:9000/', region: eu-west-1, cache: /scratch/millrace}\n"
    loaded = load(tmp_path, MINIMAL.replace("s3://my-bucket/team/pipelines", "s3://models/") + store)
    assert loaded.object_store
    assert (loaded.object_store.endpoint, loaded.object_store.region) == ("http://minio.minio:9000", "eu-west-1")
    assert str(loaded.object_root) == "s3://models"
    assert loaded.pipeline_root == Path("/scratch/millrace/s3/models")
    # A copy of the environment, as the worker makes one, still has the bucket.
    assert str(loaded.model_copy(update={"log_root": tmp_path}).object_root) == "s3://models"


def test_folders_have_no_object_store(project: Path, tmp_path: Path) -> None:
    loaded = load(tmp_path, MINIMAL.replace("s3://my-bucket/team", "a"))
    assert (loaded.object_root, loaded.object_store, loaded.state_root) == (None, None, loaded.pipeline_root)
    assert Workplace(loaded).mirror is None


def test_cloud_storage_is_named_alike(project: Path, tmp_path: Path) -> None:
    root = "gs://my-bucket/pipelines"
    loaded = load(tmp_path, MINIMAL.replace("s3://my-bucket/team/pipelines", root))
    assert loaded.object_root
    assert loaded.object_store
    mirror = Mirror(loaded.object_root, loaded.object_store)
    place = project / "artifacts/objects/gs/my-bucket/pipelines/small/Make/examples/1"
    assert mirror.path_of(f"{root}/small/Make/examples/1") == place
    assert mirror.uri_of(str(place)) == f"{root}/small/Make/examples/1"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "s3://my-bucket/team/pipelines",
            "minio://models/team",
            "{path}:2: pipeline_root: received 'minio://models/team', expected a folder, s3://bucket/prefix or "
            "gs://bucket/prefix, the bucket in small letters, digits, `.`, `_` and `-`.",
        ),
        ("s3://my-bucket/team/pipelines", "s3://My-Bucket/team", "{path}:2: pipeline_root: received 's3://My-Bucket/"),
        ("s3://my-bucket/team/pipelines", "s3://bucket/a/../b", "{path}:2: pipeline_root: received 's3://bucket/a/.."),
        (
            "s3://my-bucket/team/pipelines",
            "a/pipelines\nobject_store: {region: eu-west-1}",
            "{path}: received a section object_store and pipeline_root a/pipelines, expected s3://bucket/prefix or "
            "gs://bucket/prefix as pipeline_root, or no such section.",
        ),
        (
            "log_root: a/logs",
            "log_root: a/logs\nobject_store: {endpoint: 'minio:9000'}",
            "{path}:5: object_store.endpoint: received 'minio:9000', expected the URL of a server alone, such as "
            "http://minio:9000; keys have no place in a file.",
        ),
        (
            "log_root: a/logs",
            "log_root: a/logs\nobject_store: {endpoint: 'http://key:sesame@minio:9000'}",
            "{path}:5: object_store.endpoint: received 'minio:9000', expected the URL of a server alone, such as "
            "http://minio:9000; keys have no place in a file.",
        ),
        (
            "log_root: a/logs",
            "log_root: a/logs\nobject_store: {secret_key: sesame}",
            "{path}:5: unknown key object_store.secret_key.",
        ),
        (
            "s3://my-bucket/team/pipelines",
            "gs://my-bucket/pipelines\nobject_store: {region: eu-west-1}",
            "{path}: received object_store.region eu-west-1 with gs://my-bucket/pipelines, expected it with s3:// "
            "alone.",
        ),
        (
            "log_root: a/logs",
            f"log_root: a/logs\nbeam: {{runner: flink, flink: {{{CLUSTER}, environment_type: EXTERNAL, "
            "environment_config: 'w:1'}}",
            "{path}: received pipeline_root s3://my-bucket/team/pipelines and beam.runner flink, whose workers on "
            "flink may be other machines: they would look for the artifacts in a folder of this one. Mount the bucket "
            "on all of them (Mountpoint for Amazon S3, Cloud Storage FUSE) and name the mounted folder, or take runner "
            "direct.",
        ),
        (
            "log_root: a/logs",
            "log_root: a/logs\nbeam: {runner: auto, dataflow: {project: p, region: r, temp_location: 'gs://b/t'}}",
            "{path}: received pipeline_root s3://my-bucket/team/pipelines and beam.runner auto, whose workers on "
            "dataflow may be",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, MINIMAL.replace(old, new))
    assert str(caught.value).startswith(message.format(path=tmp_path / "mine.yaml"))


@pytest.mark.parametrize("runner", ["flink", "spark"])
def test_an_engine_whose_workers_are_here_sees_the_cache(tmp_path: Path, runner: str) -> None:
    loaded = load(tmp_path, f"{MINIMAL}beam: {{runner: {runner}, {runner}: {{{CLUSTER}}}}}\n")
    assert loaded.beam.runner == runner


def test_loading_needs_no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert Workplace(load(tmp_path, MINIMAL)).mirror is not None
