"""Writes files whole or not at all: whoever reads one meanwhile sees the old content or the new one."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Gives a path to write to, which takes the place of `path` at the end; it is removed where anything goes wrong.

    A file that is replaced hands its permissions on.

    Args:
        path: The file that is made or replaced; its folder must be there.
        folder: Where the new content is written until it is whole, on the same file system, and made if need be; beside
            the file if None.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    # No process id: those of two containers that share a folder may be the same.
    staging = (folder or path.parent) / f".{path.name[:40]}.{uuid.uuid4().hex}"
    try:
        yield staging
        if path.exists():
            shutil.copymode(path, staging)
        os.replace(staging, path)
    finally:
        staging.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8, with its line ends as they are.

    Raises:
        OSError: It cannot be written there.
    """
    with replacing(path) as staging:
        staging.write_text(text, encoding="utf-8", newline="")
