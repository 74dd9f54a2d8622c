"""How many rows a node has worked through: a small JSON file for the live view of a run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contracts import atomic

PROGRESS = "progress"
"""The key of the file's path in an execution's properties; executors remove it, because TFX publishes all the rest."""

WRITE_SECONDS = 1.0


class RowProgress:
    """Counts rows, and writes the count at most once a second; threads may share one.

    Args:
        path: The file; None writes none.
        total: How many rows there are; None if nobody knows yet.
        total_bytes: How many bytes there are, where the number of rows is unknown.
    """

    def __init__(self, path: str | None, total: int | None = None, total_bytes: int = 0) -> None:
        self._path = Path(path) if path else None
        self._total = total
        self._total_bytes = total_bytes
        self._rows = self._bytes = 0
        self._began = self._written = time.monotonic()
        self._lock = threading.Lock()

    def add(self, rows: int, num_bytes: int = 0) -> None:
        """Counts rows, and bytes, that have been worked through since the last call."""
        with self._lock:
            self._rows += rows
            self._bytes += num_bytes
            if time.monotonic() - self._written >= WRITE_SECONDS:
                self._write()

    def write(self) -> None:
        """Writes the count now."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        self._written = time.monotonic()
        done, of_all = (self._rows, self._total) if self._total else (self._bytes, self._total_bytes)
        share = min(done / of_all, 1.0) if of_all else 0.0
        counted = {"rows": self._rows, "total": self._total, "share": share, "seconds": self._written - self._began}
        atomic.write_text(self._path, json.dumps(counted))


_counting: dict[str, RowProgress] = {}
"""The counts of the nodes that this process runs, by path: what Beam sends to its workers cannot hold one."""


@contextmanager
def counting_rows(path: str | None, total: int | None = None, total_bytes: int = 0) -> Iterator[RowProgress]:
    """A count of the rows of a node, written at the block's begin and end, and once a second in between.

    Args:
        path: The file; None writes none.
        total: How many rows there are; None if nobody knows yet.
        total_bytes: How many bytes there are, where the number of rows is unknown.
    """
    progress = RowProgress(path, total, total_bytes)
    progress.write()
    _counting[path or ""] = progress
    try:
        yield progress
    finally:
        del _counting[path or ""]
        progress.write()


def count_at(path: str | None, rows: int, num_bytes: int = 0) -> None:
    """Counts rows of the node with this file, if this process runs it; in a worker elsewhere nothing is counted."""
    if path in _counting:
        _counting[path].add(rows, num_bytes)
