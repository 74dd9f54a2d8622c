"""What is remembered about files, and when it is forgotten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from components import memo as memo_module
from components.memo import FileMemo, content_digests

LONG_AGO = (10**9, 10**9)


def settled(path: Path, text: str) -> Path:
    """A file that was last written years ago."""
    path.write_text(text)
    os.utime(path, ns=LONG_AGO)
    return path


def fail(path: Path) -> str:
    raise AssertionError(f"{path} was read")


def test_a_digest_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, memo = settled(tmp_path / "data.csv", "abc"), tmp_path / "cache" / "memo.json"
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert content_digests([file], memo) == content_digests([file]) == {file: digest}
    memo.write_text(memo.read_text().replace(digest, "remembered"))
    assert content_digests([file], memo) == {file: "remembered"}
    os.utime(file, ns=(1, 1))
    assert content_digests([file], memo) == {file: digest}
    assert len(json.loads(memo.read_text())["values"]) == 1


def test_many_files_read_and_write_the_memo_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    read = memo_module._read_memo
    monkeypatch.setattr(memo_module, "_read_memo", lambda path, origin: (reads.append(path), read(path, origin))[1])
    files = [settled(tmp_path / f"{number:02}.csv", str(number)) for number in range(20)]
    memo = tmp_path / "memo.json"
    first = content_digests(files[:10], memo)
    inode = memo.stat().st_ino
    assert content_digests(files[:10], memo) == first
    assert memo.stat().st_ino == inode
    assert content_digests(files, memo) == content_digests(files)
    assert list(first) == files[:10]
    assert reads == [memo] * 3
    assert len(json.loads(memo.read_text())["values"]) == 20


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path) -> None:
    file, path = tmp_path / "a.py", tmp_path / "memo.json"
    file.write_text("x = 1")
    memo = FileMemo(path)
    assert memo.get_or_compute(file, Path.read_text) == "x = 1"
    memo.save()
    assert not path.exists()


def test_what_another_origin_computed_is_forgotten(tmp_path: Path) -> None:
    file, path = settled(tmp_path / "a.py", "x = 1"), tmp_path / "memo.json"
    first = FileMemo(path, "1")
    first.get_or_compute(file, Path.read_text)
    first.save()
    assert FileMemo(path, "1").get_or_compute(file, fail) == "x = 1"
    with pytest.raises(AssertionError, match=r"a\.py was read"):
        FileMemo(path, "2").get_or_compute(file, fail)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"origin": "", "values": 1}', "\x00"])
def test_a_memo_that_cannot_be_read_is_made_anew(tmp_path: Path, text: str) -> None:
    file, path = settled(tmp_path / "a.py", "x = 1"), tmp_path / "memo.json"
    path.write_text(text)
    memo = FileMemo(path)
    assert memo.get_or_compute(file, Path.read_text) == "x = 1"
    memo.save()
    assert FileMemo(path).get_or_compute(file, fail) == "x = 1"
