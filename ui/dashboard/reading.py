"""Reads the store for the pages, one read at a time, and caches pages until the store or the logs change.

ML Metadata reads in C++ while holding Python's global lock, and SQLite's readers hold up a run that writes, so nothing
is read again until something has been written.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_metadata as mlmd

from metadata.queries import Queries
from ui.dashboard.site import Site, UnreadableError

log = logging.getLogger(__name__)

BUSY = (mlmd.errors.FailedPreconditionError, mlmd.errors.AbortedError)
"""What ML Metadata raises while another process creates the store, or locks it for longer than the client retries."""

TRIES = 3
PAUSE_SECONDS = 0.1
KEPT_PAGES = 200
SECONDS_A_SERVER_IS_TRUSTED = 2
SECONDS_LIVE = 2
"""How long a page is cached that can change without a trace in the store, as when a run's process ends."""

SQLITE_HEADER = 100
"""Bytes, which include SQLite's counter of changes to the file."""


class MissingStoreError(Exception):
    """There is no metadata store yet."""


class Reader:
    """Makes pages from the store, and caches them.

    Args:
        site: What the dashboard shows.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._worker = ThreadPoolExecutor(1, "metadata-store")
        self._cache: OrderedDict[Hashable, tuple[Hashable, float, Any]] = OrderedDict()

    async def read(
        self, key: Hashable, make: Callable[[Queries], Any], also: Callable[[], Hashable] = lambda: None
    ) -> Any:
        """Calls `make` with the store, or returns its cached result if nothing has changed since.

        Args:
            key: Identifies the result.
            make: Makes the result. Errors are not cached, and results with a true attribute `live` only for a moment.
            also: The state of what the result depends on besides the store, such as `folder_signature`.

        Raises:
            MissingStoreError: There is no store yet.
            UnreadableError: The store cannot be read now.
        """
        cached = self._cached(key, (self._signature(), also()))
        if cached is not None:
            return cached[0]
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._read, key, make, also)

    def close(self) -> None:
        """Cancels reads that have not begun, and does not wait for others."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _cached(self, key: Hashable, signature: Hashable) -> tuple[Any] | None:
        entry = self._cache.get(key)
        if entry is None or entry[0] != signature or entry[1] < time.monotonic():
            return None
        return (entry[2],)

    def _read(self, key: Hashable, make: Callable[[Queries], Any], also: Callable[[], Hashable]) -> Any:
        # Taken before reading, so that anything written meanwhile causes the next request to read again.
        signature = (self._signature(), also())
        cached = self._cached(key, signature)
        if cached is not None:
            return cached[0]
        result = self._patiently(make)
        lasts = SECONDS_LIVE if getattr(result, "live", False) else math.inf
        self._cache[key] = (signature, time.monotonic() + lasts, result)
        self._cache.move_to_end(key)
        while len(self._cache) > KEPT_PAGES:
            self._cache.popitem(last=False)
        return result

    def _patiently(self, make: Callable[[Queries], Any]) -> Any:
        for left in reversed(range(TRIES)):
            try:
                return make(self._opened())
            except BUSY as error:
                if not left:
                    raise UnreadableError(f"It is busy: {error}") from error
                time.sleep(PAUSE_SECONDS)
            except mlmd.errors.StatusError as error:
                if self._site.store_file is not None and not self._site.store_file.exists():
                    raise MissingStoreError from error
                log.exception("The metadata store cannot be read.")
                raise UnreadableError(str(error)) from error
        raise AssertionError("the last try returns or raises")

    def _opened(self) -> Queries:
        """Reopens the store, because the file may have been replaced."""
        try:
            store = self._site.opened()
        except RuntimeError as error:
            # ML Metadata raises this if a file or a database is not a store, or cannot be reached.
            raise UnreadableError(str(error)) from error
        if store is None:
            raise MissingStoreError
        return store

    def _signature(self) -> Hashable:
        file = self._site.store_file
        if file is None:
            return int(time.monotonic() / SECONDS_A_SERVER_IS_TRUSTED)
        return file_signature(file), file_signature(file.with_name(f"{file.name}-wal")), _header(file)


def file_signature(path: Path) -> Hashable:
    """A value that changes when a file does; None if there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def folder_signature(folder: Path) -> Hashable:
    """A value that changes when a folder's files do."""
    try:
        return tuple(sorted((path.name, file_signature(path)) for path in folder.iterdir()))
    except OSError:
        return None


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SQLITE_HEADER)
    except OSError:
        return b""
