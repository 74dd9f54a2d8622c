"""The files of artifacts, in local folders and in object stores."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from metadata.files import LOCAL_FILES, Files, described, is_uri, local_sizes
from metadata.records import ArtifactRecord


class Bucket:
    """Holds the artifact s3://models/1, with one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, uri: str) -> Path:
        return self._folder / uri.rpartition("/")[2]

    def file(self, uri: str, name: str) -> Path:
        return self.folder(uri) / name

    def sizes(self, uri: str) -> list[tuple[str, int]]:
        return [("saved_model.pb", 5)]

    def gone(self, uris: Collection[str]) -> set[str]:
        return set(uris) - {"s3://models/1"}

    def all_sizes(self, uris: Collection[str]) -> dict[str, list[tuple[str, int]] | None]:
        return {uri: None if uri in self.gone(uris) else self.sizes(uri) for uri in uris}


def artifact(uri: str, files: Files = LOCAL_FILES) -> ArtifactRecord:
    return ArtifactRecord(id=1, type="Model", uri=uri, state="LIVE", properties={}, created=0, files=files)


def test_local_folders_are_read_in_place(tmp_path: Path) -> None:
    record, files = artifact(str(tmp_path)), LOCAL_FILES
    assert (record.path, record.file("a/b")) == (tmp_path, tmp_path / "a" / "b")
    assert files.sizes(record.uri) is None
    assert files.gone([record.uri, f"{tmp_path}/none"]) == {f"{tmp_path}/none"}


def test_uris_are_read_through_the_store_of_their_scheme(tmp_path: Path) -> None:
    files = Files({"s3": Bucket(tmp_path)})
    record = artifact("s3://models/1", files)
    assert (record.path, record.file("saved_model.pb")) == (tmp_path / "1", tmp_path / "1" / "saved_model.pb")
    assert files.sizes(record.uri) == [("saved_model.pb", 5)]
    uris = [record.uri, "s3://models/2", str(tmp_path), f"{tmp_path}/none"]
    assert files.gone(uris) == {"s3://models/2", f"{tmp_path}/none"}


def test_a_uri_of_an_unknown_scheme_counts_as_gone() -> None:
    record, files = artifact("gs://models/1"), LOCAL_FILES
    assert not record.path.exists()
    assert files.sizes(record.uri) is None
    assert files.gone([record.uri]) == {record.uri}


def test_the_files_of_an_artifact_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "Split-train").mkdir()
    for name in ("Split-train/data", "note", ".DS_Store", "Split-train/.hidden"):
        (tmp_path / name).write_text("a row")
    assert sorted(local_sizes(tmp_path)) == [
        (".DS_Store", 5),
        ("Split-train/.hidden", 5),
        ("Split-train/data", 5),
        ("note", 5),
    ]
    assert described(local_sizes(tmp_path)) == described([("note", 5), ("Split-train/data", 5)])
    assert described([("note", 5)]) == "1 files, 5 bytes, e3ed35297a2b9695"
    assert list(local_sizes(tmp_path / "none")) == []


def test_what_is_not_as_it_was_written(tmp_path: Path) -> None:
    files = Files({"s3": Bucket(tmp_path)})
    (tmp_path / "data").write_text("a row")
    whole = described(local_sizes(tmp_path))
    in_bucket = described([("saved_model.pb", 5)])
    assert files.changed({str(tmp_path): whole, "s3://models/1": in_bucket}) == {}
    assert files.changed({str(tmp_path): None, "s3://models/1": None}) == {}
    two = described([("data", 5), ("more", 1_000)])
    other = "has 1 files, 5 bytes, and its node wrote 2 files, 1,005 bytes"
    assert files.changed({str(tmp_path): two, "s3://models/1": two}) == {str(tmp_path): other, "s3://models/1": other}
    gone = {f"{tmp_path}/none": None, "s3://models/2": whole, f"{tmp_path}/neither": whole}
    assert files.changed(gone) == dict.fromkeys(gone, "is gone")


def test_a_uri_is_not_a_path() -> None:
    assert is_uri("s3://models/1")
    assert not is_uri("/models/1")
