"""Files are written completely or not at all."""

from pathlib import Path

import pytest

from contracts import atomic


def test_a_text_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    atomic.write_text(path, "once\r\n")
    atomic.write_text(path, "twice ∞\r\n")
    assert path.read_bytes() == "twice ∞\r\n".encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_keeps_the_permissions_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("old")
    path.chmod(0o600)
    atomic.write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def write_half() -> None:
        with atomic.replacing(path) as staging:
            staging.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_new_content_can_be_written_in_another_folder(tmp_path: Path) -> None:
    path, folder = tmp_path / "b.bin", tmp_path / ".partial"
    with atomic.replacing(path, folder) as staging:
        staging.write_bytes(b"1")
        assert staging.parent == folder
    assert path.read_bytes() == b"1"
    assert not list(folder.iterdir())


def test_what_killed_writers_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    abandoned = tmp_path / f".notes.txt.{'0a' * 16}"
    abandoned.write_text("half")
    (tmp_path / ".lock").write_text("4711")
    with atomic.replacing(tmp_path / "notes.txt") as staging:
        staging.write_text("new")
        atomic.remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "notes.txt"]
    atomic.remove_abandoned(tmp_path / "missing")
