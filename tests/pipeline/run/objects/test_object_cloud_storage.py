"""Artifacts in Cloud Storage: where its client differs from that for S3, against a server on loopback."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from mirrored import MADE, contents, make
from pyarrow import fs

from pipeline.plan.object_store_settings import ObjectRoot, ObjectStoreSettings
from pipeline.run.objects import object_store
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.objects.mirror import Mirror

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from gcp_storage_emulator.server import create_server

BUCKET = "models"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server with one bucket."""
    with create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET) as server:
        yield f"http://127.0.0.1:{server._api._httpd.server_port}"


@pytest.fixture
def mirrors(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mirror]:
    """Two machines' mirrors, without credentials, as the server has none."""
    monkeypatch.setattr(fs, "GcsFileSystem", functools.partial(fs.GcsFileSystem, anonymous=True))
    root = ObjectRoot("gs", BUCKET, tmp_path.name.lower())
    return [Mirror(root, ObjectStoreSettings(endpoint=endpoint, cache=tmp_path / name)) for name in ("here", "there")]


def test_what_one_machine_uploads_another_downloads(mirrors: list[Mirror]) -> None:
    here, there = mirrors
    uri, empty = make(here), make(here, {}, output="rejected")
    assert here.gone([uri, empty]) == {uri, empty}
    here.upload(uri)
    here.upload(empty)
    assert here.gone([uri, empty]) == set()
    assert here.sizes(uri) == [("Split-eval/data.gz", 10), ("Split-train/data.gz", 5), ("notes.json", 2)]
    assert there.file(uri, "notes.json").read_bytes() == b"{}"
    assert not there.file(uri, "none.json").exists()
    assert contents(there.path_of(uri)) == {"notes.json": b"{}"}
    assert contents(there.download(uri)) == MADE
    assert there.download(empty).is_dir()


def test_what_a_killed_node_had_uploaded_is_removed(mirrors: list[Mirror]) -> None:
    here, there = mirrors
    uris = [make(here), make(here, output="statistics")]
    for uri in uris:
        here.upload(uri)
    there.remove_uploaded(str(there.path_of(f"{there.root}/small/ExampleGen")), 2)
    assert there.gone(uris) == set()
    there.remove_uploaded(str(there.path_of(f"{there.root}/small/ExampleGen")), 1)
    assert there.gone(uris) == set(uris)
    with pytest.raises(ObjectStoreError, match=r"/examples/1 is not in the object store \(any more\)"):
        there.download(uris[0])


def test_a_bucket_is_probed(mirrors: list[Mirror], endpoint: str, tmp_path: Path) -> None:
    mirrors[0].probe()
    other = Mirror(ObjectRoot("gs", "nobody-made-it", ""), ObjectStoreSettings(endpoint=endpoint, cache=tmp_path))
    with pytest.raises(ObjectStoreError) as caught:
        other.probe()
    assert caught.value.fix == "Make the bucket, or check its name in pipeline_root; it is not made for you."


def test_a_store_that_is_down_is_reported_after_some_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "GcsFileSystem", functools.partial(fs.GcsFileSystem, anonymous=True))
    monkeypatch.setattr(object_store, "FEW_SECONDS", object_store.FEW_SECONDS / 5)
    root, settings = ObjectRoot("gs", BUCKET, ""), ObjectStoreSettings(endpoint="http://127.0.0.1:9", cache=tmp_path)
    with pytest.raises(ObjectStoreError, match=r"gs://models at http://127\.0\.0\.1:9: .*\(UNAVAILABLE\)"):
        Mirror(root, settings).probe()
