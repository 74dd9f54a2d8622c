"""SHA-256 of input files, remembered between runs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path


def content_digests(files: Iterable[Path], memo_path: Path | None = None) -> dict[Path, str]:
    """Returns the SHA-256 of each file's contents in hexadecimals, in the order of the files.

    Args:
        files: The files; of an image folder, tens of thousands.
        memo_path: A JSON file that remembers digests by path, size, modification time and inode, so that a file that
            did not change costs one stat. It is read once, and written once if anything changed; it is made if need
            be. None remembers nothing.
    """
    if memo_path is None:
        return {file: _sha256(file) for file in files}
    keys = _memo_keys(files)
    memo = _read_memo(memo_path)
    found = {file: memo.get(key) or _sha256(file) for file, key in keys.items()}
    fresh = {key: found[file] for file, key in keys.items()}
    if not fresh.items() <= memo.items():
        paths = {_path_of(key) for key in fresh}
        # What is remembered of a file as it was before is of no use any more.
        kept = {key: digest for key, digest in memo.items() if _path_of(key) not in paths}
        _write_memo(memo_path, kept | fresh)
    return found


def _memo_keys(files: Iterable[Path]) -> dict[Path, str]:
    folders: dict[str, str] = {}  # Resolving costs many times what the stat does, and files share folders.
    keys = {}
    for file in files:
        parent, name = os.path.split(file)
        if parent not in folders:
            folders[parent] = os.path.realpath(parent)
        stat = os.stat(file)
        keys[file] = f"{os.path.join(folders[parent], name)}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
    return keys


def _path_of(key: str) -> str:
    return key.rsplit("|", 3)[0]


def _read_memo(memo_file: Path) -> dict[str, str]:
    try:
        memo = json.loads(memo_file.read_text())
    except (FileNotFoundError, ValueError):  # A memo that cannot be read is only slower.
        return {}
    return memo if isinstance(memo, dict) else {}


def _write_memo(memo_file: Path, memo: dict[str, str]) -> None:
    memo_file.parent.mkdir(parents=True, exist_ok=True)
    partial = memo_file.with_name(f"{memo_file.name}.{os.getpid()}")
    partial.write_text(json.dumps(memo, indent=0))
    partial.replace(memo_file)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
