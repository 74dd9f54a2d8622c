"""A bucket through Arrow's file systems: listed, read, written and emptied, with its errors as ours.

Credentials are found as Amazon's and Google's own tools find them. Their SDKs retry calls that are refused for the
moment or get no response, after pauses that double: for some seconds, or for about a minute if `patient`.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pipeline.plan.object_store_settings import ObjectRoot, ObjectStoreSettings
from pipeline.run.objects.faults import ObjectStoreError, translated

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST_REQUESTS = 16
"""Concurrent requests; each waits for the store, not for the processor."""

READ_BYTES, WRITE_BYTES = 8 * 1024 * 1024, 1024 * 1024
"""How much is copied at a time. Each read is a request of its own; writes are collected into larger parts."""

FEW_ATTEMPTS, MANY_ATTEMPTS = 3, 8
FEW_SECONDS, MANY_SECONDS = datetime.timedelta(seconds=5), datetime.timedelta(seconds=60)


NOTHING_THERE = ("No such file or directory", "No such directory")
"""How Arrow's client for Cloud Storage reports an empty place; that for S3 raises FileNotFoundError."""


class Stat(NamedTuple):
    """What the store reports about an object.

    Attributes:
        size: Its size in bytes.
        changed: When it was written, in whole seconds since 1970, as not all of S3's requests return fractions.
    """

    size: int
    changed: int


class Tree(NamedTuple):
    """Everything below a place.

    Attributes:
        files: The objects by their names relative to it.
        folders: The names of all folders below it, including empty ones.
    """

    files: dict[str, Stat]
    folders: list[str]


class ObjectStore:
    """The store of an object root; a place in it is `bucket/key`.

    Args:
        root: The root.
        settings: How to reach it.
        patient: Whether to wait about a minute for a store that is down.
    """

    def __init__(self, root: ObjectRoot, settings: ObjectStoreSettings, patient: bool = False) -> None:
        self.root = root
        self._settings = settings
        self._patient = patient

    @cached_property
    def _files(self) -> Any:
        # Takes half a second, so only environments with an object store import it.
        from pyarrow import fs

        url = urlsplit(self._settings.endpoint or "")
        place = {"scheme": url.scheme, "endpoint_override": url.netloc} if url.netloc else {}
        if self.root.scheme == "gs":
            return fs.GcsFileSystem(retry_time_limit=MANY_SECONDS if self._patient else FEW_SECONDS, **place)
        attempts = fs.AwsStandardS3RetryStrategy(max_attempts=MANY_ATTEMPTS if self._patient else FEW_ATTEMPTS)
        region = {"region": self._settings.region} if self._settings.region else {}
        return fs.S3FileSystem(retry_strategy=attempts, **place, **region)

    def exists(self, place: str) -> bool:
        """Whether there is anything below a place: one request, and another if there is nothing.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        return self._list(place, recursive=False) is not None

    def tree(self, place: str) -> Tree | None:
        """Everything below a place; None if there is nothing.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        infos = self._list(place, recursive=True)
        if infos is None:
            return None
        names = {info.path.removeprefix(f"{place}/"): info for info in infos}
        if outside := [name for name in names if {"", ".", ".."} & set(name.split("/"))]:
            raise ObjectStoreError(
                f"the object store has an object that cannot be a file: {self.root.scheme}://{place}/{outside[0]}.",
                "Find out who writes to the bucket, and remove it.",
            )
        files = {name: _stat(info) for name, info in names.items() if info.is_file}
        return Tree(files, [name for name, info in names.items() if not info.is_file])

    def stat(self, place: str) -> Stat | None:
        """What the store reports about one object; None if there is none.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        with self._translated("read"):
            info = self._files.get_file_info(place)
        return _stat(info) if info.is_file else None

    def upload(self, file: Path, place: str) -> None:
        """Writes an object, completely or not at all.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        self._copy("written to", str(file), None, place, self._files)

    def download(self, place: str, file: Path) -> None:
        """Reads an object into a file.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
            FileNotFoundError: There is no such object.
            OSError: The file cannot be written.
        """
        self._copy("read", place, self._files, str(file), None)

    def make_folder(self, place: str) -> None:
        """Writes the marker of an empty folder.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        with self._translated("written to"):
            self._files.create_dir(place, recursive=True)

    def remove(self, place: str) -> None:
        """Removes everything below a place, if there is anything.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        with self._translated("written to"):
            try:
                self._files.delete_dir(place)
            except OSError as error:
                if not _says_nothing_is_there(error):
                    raise

    def folders(self, place: str) -> list[str]:
        """The names of the folders in a place.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        # In Cloud Storage, Arrow lists only folders that have a marker, but it lists all objects in one go.
        infos = self._list(place, recursive=self.root.scheme == "gs") or []
        paths = [(info.path.removeprefix(f"{place}/").partition("/"), info.is_file) for info in infos]
        return sorted({name for (name, below, _), is_file in paths if below or not is_file})

    def remove_object(self, place: str) -> None:
        """Removes an object, if it exists.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        with self._translated("written to"), suppress(FileNotFoundError):
            self._files.delete_file(place)

    def probe(self) -> None:
        """Lists the root, and writes, reads and removes a small object in it.

        Raises:
            ObjectStoreError: One of these cannot be done; the error says which.
        """
        place = "/".join(filter(None, (self.root.bucket, self.root.prefix)))
        self._list(place, recursive=False)
        probed = f"{place}/.millrace-check-{uuid.uuid4().hex}"
        with self._translated("written to"), self._files.open_output_stream(probed) as stream:
            stream.write(b"millrace")
        try:
            with self._translated("read"), self._files.open_input_stream(probed) as stream:
                stream.read()
        finally:
            with self._translated("deleted from"):
                self._files.delete_file(probed)

    def map_parallel(self, work: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """Applies a function to each item, several at a time; returns the results in the items' order.

        Raises:
            ObjectStoreError: The first error.
        """
        with ThreadPoolExecutor(MOST_REQUESTS) as pool:
            started = [pool.submit(work, item) for item in items]
            try:
                return [future.result() for future in started]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return translated(self.root, self._settings.endpoint, doing)

    def _list(self, place: str, recursive: bool) -> list[Any] | None:
        from pyarrow import fs

        # With allow_not_found, Arrow could not tell a missing bucket or missing permissions from an empty place.
        with self._translated("listed"):
            try:
                return list(self._files.get_file_info(fs.FileSelector(place, recursive=recursive)))
            except OSError as error:
                if _says_nothing_is_there(error):
                    return None
                raise

    def _copy(self, doing: str, source: str, from_files: Any, target: str, to_files: Any) -> None:
        from pyarrow import fs

        local_files = fs.LocalFileSystem()
        with self._translated(doing):
            fs.copy_files(
                source,
                target,
                source_filesystem=from_files or local_files,
                destination_filesystem=to_files or local_files,
                chunk_size=READ_BYTES if from_files else WRITE_BYTES,
                use_threads=False,
            )


def _says_nothing_is_there(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError) or str(error).startswith(NOTHING_THERE)


def _stat(info: Any) -> Stat:
    return Stat(info.size, int(info.mtime.timestamp()))
