"""The file of an SQLite store: whether it is whole, and its copy from the end of the last run."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

log = logging.getLogger(__name__)

MAGIC = b"SQLite format 3\0"
COPY = ".copy"
"""The end of the copy's name, after the store's own."""


def damage(path: Path, whole: bool = False) -> str | None:
    """What is wrong with the file of a store, in a few words; None if nothing is, or there is no store yet.

    Args:
        path: The file.
        whole: Whether to read all of it, some milliseconds for each megabyte, instead of its first pages.
    """
    if not path.exists():
        return None
    with path.open("rb") as file:
        beginning = file.read(len(MAGIC))
    if not beginning:
        # ML Metadata makes an empty file first; once there is a copy, the store was not empty.
        return "it is empty" if copy_of(path).exists() else None
    if beginning != MAGIC:
        return "it is not an SQLite file"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as store:
            [[answer]] = store.execute("PRAGMA quick_check(1)" if whole else "SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        # It is locked, or has a journal that is still to be rolled back: nothing is wrong with it.
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return str(answer) if whole and answer != "ok" else None


def copy_of(path: Path) -> Path:
    """Where the copy of a store's file is."""
    return path.with_name(path.name + COPY)


def keep_copy(path: Path) -> None:
    """Copies the file of a store that is whole, also while others read it; the earlier copy stays if that fails."""
    if not path.stat().st_size:
        # On a full disk ML Metadata makes the file and no table; with a copy of it, it would count as damaged.
        return
    new = path.with_name(f"{path.name}{COPY}.new")
    try:
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as store, closing(sqlite3.connect(new)) as copied:
            store.backup(copied)
        new.replace(copy_of(path))
    except (OSError, sqlite3.OperationalError) as error:
        # A full disk, for instance: no reason to fail a run that succeeded.
        log.warning("no copy of %s was made: %s", path, error)
