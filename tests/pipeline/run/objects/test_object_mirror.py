"""The local mirror of a bucket's artifacts: what is downloaded, uploaded, requested, and never taken for complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mirrored import MADE, contents, make
from object_server import ObjectServer

from pipeline.plan import environment as environments
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.objects.mirror import PARTIAL_FOLDER, Mirror
from pipeline.run.workplace import Workplace

Machine = Callable[[str], Mirror]


@pytest.fixture
def machine(object_environment: Callable[..., str]) -> Machine:
    """A mirror as a separate process would have it: `machine("a")` has the cache `a`."""

    def make(cache: str) -> Mirror:
        environment = environments.load(object_environment(cache))
        assert environment.object_root
        assert environment.object_store
        return Mirror(environment.object_root, environment.object_store)

    return make


def test_what_one_machine_uploads_another_downloads(
    machine: Machine, object_server: ObjectServer, tmp_path: Path
) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here)
    (here.path_of(uri) / "empty" / "folder").mkdir(parents=True)
    here.upload(uri)
    assert object_server.objects(uri.removeprefix("s3://")) == MADE
    path = there.download(uri)
    assert path == tmp_path / "there" / "s3" / uri.removeprefix("s3://")
    assert contents(path) == MADE
    assert (path / "empty" / "folder").is_dir()
    assert list((tmp_path / "there" / PARTIAL_FOLDER).iterdir()) == []


def test_an_artifact_without_files_is_there(machine: Machine) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here, {})
    assert here.gone([uri]) == {uri}
    here.upload(uri)
    assert here.gone([uri]) == set()
    assert there.download(uri).is_dir()
    assert there.sizes(uri) == []


def test_what_is_here_is_not_downloaded_again(machine: Machine, object_server: ObjectServer) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here)
    here.upload(uri)
    there.download(uri)
    object_server.requests.clear()
    there.download(uri)
    here.download(uri)
    assert object_server.requests == []
    bucket = f"GET /{here.root.bucket}"
    # Another process on the same machine only lists it: folder by folder, or in one request with a newer Arrow.
    machine("there").download(uri)
    assert set(object_server.requests) == {bucket}
    assert len(object_server.requests) <= 3


def test_a_file_that_a_killed_process_left_is_downloaded_anew(machine: Machine, object_server: ObjectServer) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here)
    here.upload(uri)
    left = make(there, {"Split-train/data.gz": b"TRAIN", "Split-train/more.gz": b"left"})
    assert contents(there.download(left)) == MADE


def test_an_artifact_of_another_history_is_not_taken_for_this_one(
    machine: Machine, object_server: ObjectServer
) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here)
    here.upload(uri)
    there.download(uri)
    # As after the metadata store was recreated: the same name and sizes, other bytes, written at another time.
    object_server.write(f"{uri.removeprefix('s3://')}/stale.json", b"{}")
    again = {name: content.upper() for name, content in MADE.items()}
    make(here, again)
    here.upload(uri)
    assert object_server.objects(uri.removeprefix("s3://")) == again
    old = there.path_of(uri) / "notes.json"
    for path in there.path_of(uri).rglob("*.*"):
        os.utime(path, (1e9, 1e9))
    assert old.read_bytes() == b"{}"
    assert contents(machine("there").download(uri)) == again


def test_a_file_alone_is_downloaded_alone(machine: Machine, object_server: ObjectServer) -> None:
    here, there = machine("here"), machine("there")
    uri = make(here)
    here.upload(uri)
    object_server.requests.clear()
    path = there.file(uri, "notes.json")
    assert contents(there.path_of(uri)) == {"notes.json": b"{}"}
    assert {request.rpartition("/")[2] for request in object_server.requests} == {"notes.json"}
    object_server.requests.clear()
    assert there.file(uri, "notes.json") == path
    assert object_server.requests == []
    assert not there.file(uri, "other.json").exists()
    assert there.file(uri, "../2/notes.json") == there.path_of(uri) / "../2/notes.json"
    assert not there.file(uri, "../2/notes.json").exists()
    assert contents(there.folder(uri)) == MADE


def test_an_emptied_cache_is_filled_again(machine: Machine) -> None:
    here = machine("here")
    uri = make(here)
    here.upload(uri)
    for path in here.path_of(uri).rglob("*.*"):
        path.unlink()
    here.path_of(uri).rename(here.path_of(uri).with_name("away"))
    assert contents(here.download(uri)) == MADE


def test_whether_artifacts_are_there_costs_a_request_each(machine: Machine, object_server: ObjectServer) -> None:
    here = machine("here")
    uris = [make(here, number=number) for number in range(1, 4)]
    for uri in uris:
        here.upload(uri)
    object_server.requests.clear()
    assert here.gone(uris) == set()
    assert object_server.requests == [f"GET /{here.root.bucket}"] * 3
    object_server.remove(uris[1].removeprefix("s3://"))
    assert here.gone(uris) == {uris[1]}


def test_an_input_that_was_deleted_is_an_error_and_a_page_shows_nothing_of_it(machine: Machine) -> None:
    here = machine("here")
    uri = f"{here.root}/small/ExampleGen/examples/9"
    with pytest.raises(ObjectStoreError) as caught:
        here.download(uri)
    assert str(caught.value) == (
        f"{uri} is not in the object store (any more), and a node needs it.\n"
        "Run the pipeline again: the node that made it will run again."
    )
    assert not here.folder(uri).exists()
    assert not here.file(uri, "notes.json").exists()
    assert here.sizes(uri) is None


def test_what_a_killed_node_had_uploaded_is_removed(machine: Machine, object_server: ObjectServer) -> None:
    here = machine("here")
    done, killed = make(here, number=1), make(here, number=2)
    here.upload(done)
    object_server.write(f"{killed.removeprefix('s3://')}/Split-train/data.gz", b"train")
    here.remove_uploaded(str(here.path_of(killed).parent.parent), 2)
    assert here.gone([done, killed]) == {killed}
    # A node that never uploaded anything has nothing to remove.
    here.remove_uploaded(str(here.cache / "s3" / here.root.bucket / "team/pipelines/small/Trainer"), 3)


def test_no_object_leads_out_of_the_cache(machine: Machine, object_server: ObjectServer, tmp_path: Path) -> None:
    here = machine("here")
    uri = f"{here.root}/small/ExampleGen/examples/1"
    object_server.write_as_named(f"{uri.removeprefix('s3://')}/../../evil", b"evil")
    with pytest.raises(ObjectStoreError, match=r"has an object that cannot be a file: s3://.*/examples/1/\.\."):
        here.download(uri)
    assert not list(tmp_path.rglob("evil"))


def test_places_and_names(machine: Machine, tmp_path: Path) -> None:
    here = machine("here")
    place = tmp_path / "here" / "s3" / here.root.bucket / "team/pipelines/small"
    assert here.uri_of(str(place)) == f"{here.root}/small"
    assert here.path_of(f"{here.root}/small") == place
    # What is stored elsewhere keeps its name and its place.
    for other in ("/mnt/models/1", "", "a text", "gs://bucket/x"):
        assert here.uri_of(other) == other
    assert here.path_of("/mnt/models/1") == here.download("/mnt/models/1") == Path("/mnt/models/1")


def test_who_reads_artifacts_gets_paths(
    object_environment: Callable[..., str], machine: Machine, tmp_path: Path
) -> None:
    uri = make(machine("here"))
    machine("here").upload(uri)
    files = Workplace.load(object_environment("there")).files
    folder = tmp_path / "there" / "s3" / uri.removeprefix("s3://")
    assert files.file(uri, "notes.json") == folder / "notes.json"
    assert contents(folder) == {"notes.json": b"{}"}
    assert files.folder(uri) == folder
    assert contents(folder) == MADE
    assert files.sizes(uri) == [(name, len(MADE[name])) for name in sorted(MADE)]
    assert files.gone([uri, f"{uri}1", str(tmp_path), str(tmp_path / "none")]) == {f"{uri}1", str(tmp_path / "none")}
    # Local folders are read in place, and so are URIs of unknown schemes.
    assert files.folder(str(tmp_path)) == tmp_path
    assert files.sizes(str(tmp_path)) is None
    assert not files.folder("gs://bucket/artifact").exists()
