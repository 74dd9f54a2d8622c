"""Values computed from files and remembered between runs: digests of input files, imports of source files."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from contracts import atomic

SETTLED_NS = 10**9


class FileMemo:
    """Remembers a value for each file by its path, size, modification time and inode: an unchanged file costs one stat.

    A file modified less than a second ago is not remembered: file systems' clocks are coarse, and another change could
    leave all four unchanged.

    Args:
        path: The JSON file of remembered values, read at once and created by `save` if need be; None remembers nothing.
        origin: What the values are computed by; values of another origin are forgotten.
    """

    def __init__(self, path: Path | None, origin: str = "") -> None:
        self._path = path
        self._origin = origin
        self._values = _read_memo(path, origin) if path else {}
        self._used: dict[str, Any] = {}
        # Resolving a path costs many times as much as a stat, and files share folders.
        self._folders: dict[str, str] = {}

    def get_or_compute(self, file: Path, compute: Callable[[Path], Any]) -> Any:
        """Returns the remembered value of a file, or else computes it; it must be a value that JSON can hold."""
        if self._path is None:
            return compute(file)
        stat = os.stat(file)
        key = f"{self._real(file)}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
        value = self._values[key] if key in self._values else compute(file)
        if time.time_ns() - stat.st_mtime_ns > SETTLED_NS:
            self._used[key] = value
        return value

    def save(self) -> None:
        """Writes the new values, if there are any, and forgets those of earlier states of the same files."""
        if self._path is None or self._used.keys() <= self._values.keys():
            return
        paths = {_path_of(key) for key in self._used}
        other_files = {key: value for key, value in self._values.items() if _path_of(key) not in paths}
        self._values = other_files | self._used
        self._path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(self._path, json.dumps({"origin": self._origin, "values": self._values}, indent=0))

    def _real(self, file: Path) -> str:
        parent, name = os.path.split(file)
        if parent not in self._folders:
            self._folders[parent] = os.path.realpath(parent)
        return os.path.join(self._folders[parent], name)


def _path_of(key: str) -> str:
    return key.rsplit("|", 3)[0]


def _read_memo(path: Path, origin: str) -> dict[str, Any]:
    try:
        memo = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # Without a readable memo the run is only slower.
        return {}
    if not isinstance(memo, dict) or memo.get("origin") != origin or not isinstance(memo.get("values"), dict):
        return {}
    values: dict[str, Any] = memo["values"]
    return values


def content_digests(files: Iterable[Path], memo_path: Path | None = None) -> dict[Path, str]:
    """Returns the SHA-256 of each file's contents in hexadecimals, in the order of the files.

    Args:
        files: The files; tens of thousands in an image folder.
        memo_path: Where digests are remembered; see `FileMemo`.
    """
    memo = FileMemo(memo_path)
    digests = {file: memo.get_or_compute(file, file_digest) for file in files}
    memo.save()
    return digests


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's contents, in hexadecimals."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
