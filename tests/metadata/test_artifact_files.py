"""The files of artifacts, in folders and in stores of objects."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from metadata.files import LOCAL_FILES, Files, is_uri
from metadata.records import ArtifactRecord


class Bucket:
    """Holds the artifact s3://models/1, with one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def whole(self, uri: str) -> Path:
        return self._folder / uri.rpartition("/")[2]

    def file(self, uri: str, name: str) -> Path:
        return self.whole(uri) / name

    def sizes(self, uri: str) -> list[tuple[str, int]]:
        return [("saved_model.pb", 5)]

    def gone(self, uris: Collection[str]) -> set[str]:
        return set(uris) - {"s3://models/1"}


def artifact(uri: str, files: Files = LOCAL_FILES) -> ArtifactRecord:
    return ArtifactRecord(id=1, type="Model", uri=uri, state="LIVE", properties={}, created=0, files=files)


def test_folders_are_what_they_are(tmp_path: Path) -> None:
    made, files = artifact(str(tmp_path)), LOCAL_FILES
    assert (made.path, made.file("a/b")) == (tmp_path, tmp_path / "a" / "b")
    assert files.sizes(made.uri) is None
    assert files.gone([made.uri, f"{tmp_path}/none"]) == {f"{tmp_path}/none"}


def test_others_are_asked_for_where_they_lie(tmp_path: Path) -> None:
    files = Files({"s3": Bucket(tmp_path)})
    made = artifact("s3://models/1", files)
    assert (made.path, made.file("saved_model.pb")) == (tmp_path / "1", tmp_path / "1" / "saved_model.pb")
    assert files.sizes(made.uri) == [("saved_model.pb", 5)]
    uris = [made.uri, "s3://models/2", str(tmp_path), f"{tmp_path}/none"]
    assert files.gone(uris) == {"s3://models/2", f"{tmp_path}/none"}


def test_what_nobody_holds_is_gone() -> None:
    made, files = artifact("gs://models/1"), LOCAL_FILES
    assert not made.path.exists()
    assert files.sizes(made.uri) is None
    assert files.gone([made.uri]) == {made.uri}


def test_a_uri_is_no_path() -> None:
    assert is_uri("s3://models/1")
    assert not is_uri("/models/1")
