"""What was computed from files, remembered between runs: digests of input files, what source files import."""

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

    A file modified less than a second ago is not remembered: clocks of file systems are coarse, and a second change
    could leave all of these as they are.

    Args:
        path: The JSON file that remembers, read at once and made by `save` if need be; None remembers nothing.
        origin: What the values were computed by; those of another origin are forgotten.
    """

    def __init__(self, path: Path | None, origin: str = "") -> None:
        self._path = path
        self._origin = origin
        self._known = _read_memo(path, origin) if path else {}
        self._seen: dict[str, Any] = {}
        # Resolving costs many times what the stat does, and files share folders.
        self._folders: dict[str, str] = {}

    def of(self, file: Path, compute: Callable[[Path], Any]) -> Any:
        """Returns the value of a file: as remembered, or as computed, which must be what JSON holds."""
        if self._path is None:
            return compute(file)
        stat = os.stat(file)
        key = f"{self._real(file)}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
        value = self._known[key] if key in self._known else compute(file)
        if time.time_ns() - stat.st_mtime_ns > SETTLED_NS:
            self._seen[key] = value
        return value

    def save(self) -> None:
        """Writes what was learned, where anything was, and forgets what files were like before."""
        if self._path is None or self._seen.keys() <= self._known.keys():
            return
        paths = {_path_of(key) for key in self._seen}
        kept = {key: value for key, value in self._known.items() if _path_of(key) not in paths}
        self._known = kept | self._seen
        self._path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(self._path, json.dumps({"origin": self._origin, "values": self._known}, indent=0))

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
    except (FileNotFoundError, ValueError):  # A memo that cannot be read is only slower.
        return {}
    if not isinstance(memo, dict) or memo.get("origin") != origin or not isinstance(memo.get("values"), dict):
        return {}
    values: dict[str, Any] = memo["values"]
    return values


def content_digests(files: Iterable[Path], memo_path: Path | None = None) -> dict[Path, str]:
    """Returns the SHA-256 of each file's contents in hexadecimals, in the order of the files.

    Args:
        files: The files; of an image folder, tens of thousands.
        memo_path: Where digests are remembered: see `FileMemo`.
    """
    memo = FileMemo(memo_path)
    digests = {file: memo.of(file, file_digest) for file in files}
    memo.save()
    return digests


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's contents, in hexadecimals."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
