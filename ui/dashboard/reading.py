"""Reads the store for the pages: one read at a time, kept for as long as the store and the logs stay what they are.

ML Metadata reads in C++ and holds Python's lock meanwhile, and SQLite's readers hold up a run that writes: what was
read once is not read again until something was written.
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
"""What ML Metadata raises while another process makes the store, or holds it longer than the client tries."""

TRIES = 3
PAUSE_SECONDS = 0.1
KEPT_PAGES = 200
SECONDS_A_SERVER_IS_TRUSTED = 2
SECONDS_LIVE = 2
"""How long a page is kept that also changes without a trace in the store, as when a run's process ends."""

SQLITE_HEADER = 100
"""Bytes; SQLite counts in them how often the file was changed."""


class MissingStoreError(Exception):
    """There is no metadata store yet."""


class Reader:
    """Makes pages from the store, and keeps them.

    Args:
        site: What is looked at.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._worker = ThreadPoolExecutor(1, "metadata-store")
        self._kept: OrderedDict[Hashable, tuple[Hashable, float, Any]] = OrderedDict()

    async def read(
        self, key: Hashable, make: Callable[[Queries], Any], also: Callable[[], Hashable] = lambda: None
    ) -> Any:
        """What `make` makes of the store, or made of it when it was as it is now.

        Args:
            key: Names it.
            make: Makes it; what it raises is not kept, and what has a true attribute `live` for a moment only.
            also: What it depends on besides the store, such as `logs_signature`.

        Raises:
            MissingStoreError: There is no store yet.
            UnreadableError: The store cannot be read now.
        """
        found = self._found(key, (self._signature(), also()))
        if found is not None:
            return found[0]
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._read, key, make, also)

    def close(self) -> None:
        """Waits for no read that has not begun."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _found(self, key: Hashable, signature: Hashable) -> tuple[Any] | None:
        kept = self._kept.get(key)
        if kept is None or kept[0] != signature or kept[1] < time.monotonic():
            return None
        return (kept[2],)

    def _read(self, key: Hashable, make: Callable[[Queries], Any], also: Callable[[], Hashable]) -> Any:
        # Before the read: what is written meanwhile makes the next one read again.
        signature = (self._signature(), also())
        found = self._found(key, signature)
        if found is not None:
            return found[0]
        made = self._patiently(make)
        lasts = SECONDS_LIVE if getattr(made, "live", False) else math.inf
        self._kept[key] = (signature, time.monotonic() + lasts, made)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_PAGES:
            self._kept.popitem(last=False)
        return made

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
        """The store, opened anew, for the file may be another one by now."""
        try:
            store = self._site.opened()
        except RuntimeError as error:
            # So ML Metadata says that a file or a database is no store, or cannot be reached.
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
    """What tells whether a file is still the same; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def folder_signature(folder: Path) -> Hashable:
    """What tells whether a folder's files are still the same."""
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
