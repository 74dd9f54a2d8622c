"""SHA-256 of input files, remembered between runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from components.memo import FileMemo


def content_digests(files: Iterable[Path], memo_path: Path | None = None) -> dict[Path, str]:
    """Returns the SHA-256 of each file's contents in hexadecimals, in the order of the files.

    Args:
        files: The files; of an image folder, tens of thousands.
        memo_path: Where digests are remembered: see `FileMemo`.
    """
    memo = FileMemo(memo_path)
    found = {file: memo.of(file, _sha256) for file in files}
    memo.save()
    return found


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
