"""The files of artifacts, in local folders and in object stores."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

SEPARATOR = "://"

WRITTEN = "written"
"""The custom property of an artifact that says which files its node wrote; see `described`."""


def described(sizes: Iterable[tuple[str, int]]) -> str:
    """The files of an artifact in a line: their number, bytes, and a digest of their names and sizes.

    Files whose names begin with a dot do not count: desktops leave them wherever somebody looks.

    Args:
        sizes: Their names relative to the artifact, and sizes in bytes, in any order.
    """
    counted = sorted((name, size) for name, size in sizes if not name.rpartition("/")[2].startswith("."))
    digest = hashlib.sha256("".join(f"{size} {name}\n" for name, size in counted).encode("utf-8", "surrogateescape"))
    return f"{len(counted):,} files, {sum(size for _, size in counted):,} bytes, {digest.hexdigest()[:16]}"


def local_sizes(folder: str | Path, below: str = "") -> Iterator[tuple[str, int]]:
    """Yields the files in a folder and below it, as `ObjectFiles.sizes` does; nothing if there is no such folder."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir():
            yield from local_sizes(entry.path, f"{below}{entry.name}/")
        elif entry.is_file():
            yield f"{below}{entry.name}", entry.stat().st_size


class UnavailableError(Exception):
    """The store that holds the files cannot be reached now, or refuses us; the message says why."""


class ObjectFiles(Protocol):
    """The artifacts in an object store, by their URIs in the metadata store.

    Every method may raise an `UnavailableError`.
    """

    def folder(self, uri: str) -> Path:
        """The local folder with all files of an artifact; the folder does not exist if the artifact is gone."""

    def file(self, uri: str, name: str) -> Path:
        """The local path of one file of an artifact; the path does not exist if the artifact has no such file."""

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """The files of an artifact: names relative to it, and sizes in bytes; None if it is gone."""

    def gone(self, uris: Collection[str]) -> set[str]:
        """Which of these artifacts do not exist (any more)."""

    def all_sizes(self, uris: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]] | None]:
        """The `sizes` of several artifacts."""


class Files:
    """The files of artifacts as local paths, wherever they are stored.

    Args:
        stores: The object stores by the scheme of their URIs, such as `s3`; artifacts under other schemes count as
            gone.
    """

    def __init__(self, stores: Mapping[str, ObjectFiles] | None = None) -> None:
        self._stores = dict(stores or {})

    def folder(self, uri: str) -> Path:
        """The local folder with all files of an artifact; the folder does not exist if the artifact is gone.

        Raises:
            UnavailableError: Its store cannot be reached.
        """
        store = self._store_of(uri)
        return store.folder(uri) if store else Path(uri)

    def file(self, uri: str, name: str) -> Path:
        """The local path of one file of an artifact; the path does not exist if the artifact has no such file.

        Raises:
            UnavailableError: Its store cannot be reached.
        """
        store = self._store_of(uri)
        return store.file(uri, name) if store else Path(uri, name)

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """The files of an artifact in an object store, with sizes in bytes; None if it is gone, or in a local folder.

        Raises:
            UnavailableError: Its store cannot be reached.
        """
        store = self._store_of(uri)
        return store.sizes(uri) if store else None

    def gone(self, uris: Collection[str]) -> set[str]:
        """Which of these artifacts do not exist (any more).

        Raises:
            UnavailableError: A store cannot be reached.
        """
        gone = {uri for uri in uris if self._store_of(uri) is None and not Path(uri).exists()}
        for scheme, store in self._stores.items():
            if theirs := [uri for uri in uris if uri.startswith(f"{scheme}{SEPARATOR}")]:
                gone |= store.gone(theirs)
        return gone

    def changed(self, written: Mapping[str, str | None]) -> dict[str, str]:
        """Which of these artifacts do not exist (any more), or are not what their nodes wrote; and what is wrong.

        Args:
            written: The artifacts' URIs and their properties `WRITTEN`; None, as older versions left it, is not
                compared.

        Returns:
            URI -> the end of a sentence that begins with it.

        Raises:
            UnavailableError: A store cannot be reached.
        """
        changed = dict.fromkeys(self.gone([uri for uri, then in written.items() if then is None]), "is gone")
        compared = {uri: then for uri, then in written.items() if then is not None}
        for uri, now in self._described(list(compared)).items():
            if now is None:
                changed[uri] = "is gone"
            elif now != compared[uri]:
                files_now, _, _ = now.rpartition(", ")
                files_then, _, _ = str(compared[uri]).rpartition(", ")
                changed[uri] = f"has {files_now}, and its node wrote {files_then}"
        return changed

    def _described(self, uris: Sequence[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for uri in uris:
            if self._store_of(uri) is None:
                found[uri] = described(local_sizes(uri)) if Path(uri).exists() else None
        for scheme, store in self._stores.items():
            if theirs := [uri for uri in uris if uri.startswith(f"{scheme}{SEPARATOR}")]:
                sizes = store.all_sizes(theirs).items()
                found |= {uri: None if listed is None else described(listed) for uri, listed in sizes}
        return found

    def _store_of(self, uri: str) -> ObjectFiles | None:
        return self._stores.get(uri.partition(SEPARATOR)[0]) if is_uri(uri) else None


LOCAL_FILES = Files()
"""Only those in local folders."""


def is_uri(location: str) -> bool:
    """Whether a location is a URI, not a local path."""
    return SEPARATOR in location
