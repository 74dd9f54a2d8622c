"""A bucket through Arrow's file systems: listed, read, written and emptied, with faults as our errors.

Who we are is found as Amazon's and Google's own tools find it. A call that is refused for the moment or gets no answer
is made again by their SDKs, after pauses that double: some seconds long, or about a minute where `patient`.
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

AT_ONCE = 16
"""Requests at once; each waits for the store, not for the processor."""

READ_BYTES, WRITE_BYTES = 8 * 1024 * 1024, 1024 * 1024
"""What is copied at a time. Each reading is a request of its own; what is written is gathered into larger parts."""

FEW_ATTEMPTS, MANY_ATTEMPTS = 3, 8
FEW_SECONDS, MANY_SECONDS = datetime.timedelta(seconds=5), datetime.timedelta(seconds=60)


NOTHING_THERE = ("No such file or directory", "No such directory")
"""How Arrow's client for Cloud Storage says that nothing lies below a place; that for S3 raises FileNotFoundError."""


class Stat(NamedTuple):
    """What a store says of an object.

    Attributes:
        size: Its bytes.
        changed: When it was written, whole seconds since 1970: one request of S3 tells parts of them, another none.
    """

    size: int
    changed: int


class Tree(NamedTuple):
    """What lies below a place.

    Attributes:
        files: The objects by their names below it.
        folders: The names of all folders below it, those without objects, too.
    """

    files: dict[str, Stat]
    folders: list[str]


class ObjectStore:
    """The store of an object root; places in it are `bucket/key`.

    Args:
        root: The root.
        settings: How it is reached.
        patient: Whether to wait for about a minute for a store that is away.
    """

    def __init__(self, root: ObjectRoot, settings: ObjectStoreSettings, patient: bool = False) -> None:
        self.root = root
        self._settings = settings
        self._patient = patient

    @cached_property
    def _files(self) -> Any:
        # Half a second, which an environment without object store does not pay.
        from pyarrow import fs

        url = urlsplit(self._settings.endpoint or "")
        place = {"scheme": url.scheme, "endpoint_override": url.netloc} if url.netloc else {}
        if self.root.scheme == "gs":
            return fs.GcsFileSystem(retry_time_limit=MANY_SECONDS if self._patient else FEW_SECONDS, **place)
        attempts = fs.AwsStandardS3RetryStrategy(max_attempts=MANY_ATTEMPTS if self._patient else FEW_ATTEMPTS)
        region = {"region": self._settings.region} if self._settings.region else {}
        return fs.S3FileSystem(retry_strategy=attempts, **place, **region)

    def exists(self, place: str) -> bool:
        """Whether there is anything below a place: one request, and another where there is nothing.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        return self._list(place, recursive=False) is not None

    def tree(self, place: str) -> Tree | None:
        """All that lies below a place; None where nothing does.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        found = self._list(place, recursive=True)
        if found is None:
            return None
        names = {info.path.removeprefix(f"{place}/"): info for info in found}
        if outside := [name for name in names if {"", ".", ".."} & set(name.split("/"))]:
            raise ObjectStoreError(
                f"the object store has an object that cannot be a file: {self.root.scheme}://{place}/{outside[0]}.",
                "Find out who writes to the bucket, and remove it.",
            )
        files = {name: _stat(info) for name, info in names.items() if info.is_file}
        return Tree(files, [name for name, info in names.items() if not info.is_file])

    def stat(self, place: str) -> Stat | None:
        """What the store says of one object; None where there is none.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        with self._told("read"):
            info = self._files.get_file_info(place)
        return _stat(info) if info.is_file else None

    def upload(self, file: Path, place: str) -> None:
        """Writes an object: whole, or not at all.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        self._copy("written to", str(file), None, place, self._files)

    def download(self, place: str, file: Path) -> None:
        """Reads an object into a file.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
            FileNotFoundError: There is no such object.
            OSError: The file cannot be written.
        """
        self._copy("read", place, self._files, str(file), None)

    def make_folder(self, place: str) -> None:
        """Writes the marker of a folder that has no objects.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        with self._told("written to"):
            self._files.create_dir(place, recursive=True)

    def remove(self, place: str) -> None:
        """Removes all that lies below a place; nothing where there is nothing.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        with self._told("written to"):
            try:
                self._files.delete_dir(place)
            except OSError as error:
                if not _says_nothing_is_there(error):
                    raise

    def folders(self, place: str) -> list[str]:
        """The names of the folders in a place.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        # Of Cloud Storage, Arrow lists folders only where somebody made a marker for them; but all objects in one go.
        found = self._list(place, recursive=self.root.scheme == "gs") or []
        paths = [(info.path.removeprefix(f"{place}/").partition("/"), info.is_file) for info in found]
        return sorted({name for (name, below, _), is_file in paths if below or not is_file})

    def remove_object(self, place: str) -> None:
        """Removes an object; nothing where there is none.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        with self._told("written to"), suppress(FileNotFoundError):
            self._files.delete_file(place)

    def probe(self) -> None:
        """Lists the root, and writes, reads and removes a small object in it.

        Raises:
            ObjectStoreError: One of these cannot be done; the error says which.
        """
        place = "/".join(filter(None, (self.root.bucket, self.root.prefix)))
        self._list(place, recursive=False)
        probed = f"{place}/.millrace-check-{uuid.uuid4().hex}"
        with self._told("written to"), self._files.open_output_stream(probed) as stream:
            stream.write(b"millrace")
        try:
            with self._told("read"), self._files.open_input_stream(probed) as stream:
                stream.read()
        finally:
            with self._told("deleted from"):
                self._files.delete_file(probed)

    def at_once(self, work: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """Does something with each item, several at a time; in their order.

        Raises:
            ObjectStoreError: The first one that came.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            started = [pool.submit(work, item) for item in items]
            try:
                return [future.result() for future in started]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _told(self, doing: str) -> AbstractContextManager[None]:
        return translated(self.root, self._settings.endpoint, doing)

    def _list(self, place: str, recursive: bool) -> list[Any] | None:
        from pyarrow import fs

        # Allowed not to be there, Arrow tells neither a missing bucket nor missing rights from an empty place.
        with self._told("listed"):
            try:
                return list(self._files.get_file_info(fs.FileSelector(place, recursive=recursive)))
            except OSError as error:
                if _says_nothing_is_there(error):
                    return None
                raise

    def _copy(self, doing: str, source: str, from_files: Any, target: str, to_files: Any) -> None:
        from pyarrow import fs

        here = fs.LocalFileSystem()
        with self._told(doing):
            fs.copy_files(
                source,
                target,
                source_filesystem=from_files or here,
                destination_filesystem=to_files or here,
                chunk_size=READ_BYTES if from_files else WRITE_BYTES,
                use_threads=False,
            )


def _says_nothing_is_there(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError) or str(error).startswith(NOTHING_THERE)


def _stat(info: Any) -> Stat:
    return Stat(info.size, int(info.mtime.timestamp()))
