"""The folder of `trainer.input.cache: disk`: parsed rows in tf.data's cache files, removed when the training ends.

What a killed training left is removed by the next one: each folder is locked by the process that uses it, and a lock
ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tensorflow as tf

from components.trainer.settings import InputSettings
from contracts.errors import TrainingError

PREFIX = "millrace-cache-"
LOCK_FILE = "lock"

RESERVE = 1 << 30
"""Bytes of the disk that are left free."""


@contextmanager
def cache_folder(settings: InputSettings) -> Iterator[Path | None]:
    """A folder for cache files within the context, under the system's folder for temporary files (TMPDIR).

    Yields:
        The folder; None if the settings ask for no cache on disk.
    """
    if settings.cache != "disk":
        yield None
        return
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def fill(chunks: tf.data.Dataset, folder: Path, name: str) -> tuple[tf.data.Dataset, int]:
    """Writes all chunks of a split to cache files, once, so that any number of iterators can read them.

    Args:
        chunks: The split's columns by name in chunks of rows; none of them may be empty.
        folder: See `cache_folder`.
        name: Tells the splits' files apart.

    Returns:
        The cached chunks, and the number of rows.

    Raises:
        TrainingError: The disk would be filled.
    """
    cached = chunks.cache(str(folder / name))
    rows = 0
    for chunk in cached:
        rows += len(next(iter(chunk.values())))
        free = shutil.disk_usage(folder).free
        if free < RESERVE:
            raise TrainingError(
                f"trainer.input.cache is disk, but {_gigabytes(free)} are free in {folder.parent} after {rows:,} rows "
                f"({_gigabytes(size(folder))}), expected at least {_gigabytes(RESERVE)}.",
                "Let TMPDIR name a folder on a larger disk, or set trainer.input.cache to none.",
            )
    return cached, rows


def describe(folder: Path) -> str:
    """Where the rows lie, for the log."""
    return f"kept on disk ({_gigabytes(size(folder))} in {folder})"


def size(folder: Path) -> int:
    """The bytes of a folder's files, while tf.data may be renaming its temporary ones."""
    bytes_in_all = 0
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            bytes_in_all += path.stat().st_size
    return bytes_in_all


def _remove_abandoned() -> None:
    for lock_path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK_FILE}"):
        # Those of other users cannot be removed.
        if not os.access(lock_path, os.W_OK):
            continue
        with lock_path.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(lock_path.parent)


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:.2f} GB"
