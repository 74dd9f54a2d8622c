"""Writes files atomically: a concurrent reader sees either the old content or the new."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")


@contextmanager
def replacing(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Yields a temporary path to write to, which replaces `path` at the end; on any error it is removed.

    The new file keeps the permissions of the one it replaces.

    Args:
        path: The file to create or replace; its folder must exist.
        folder: Where the temporary file is written, on the same file system; created if missing. None: beside `path`.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    # Not the process id: two containers that share a folder may have the same one.
    staging = (folder or path.parent) / f".{path.name[:40]}.{uuid.uuid4().hex}"
    try:
        with staging.open("ab") as claim:
            # Until it is closed, `remove_abandoned` leaves the file alone.
            fcntl.flock(claim, fcntl.LOCK_SH)
            yield staging
            if path.exists():
                shutil.copymode(path, staging)
            os.replace(staging, path)
    finally:
        staging.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Removes the temporary files in a folder whose writers were killed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY.fullmatch(path.name):
            with suppress(BlockingIOError, FileNotFoundError), path.open("rb") as claim:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8, leaving its line endings as they are.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(path) as staging:
        staging.write_text(text, encoding="utf-8", newline="")
