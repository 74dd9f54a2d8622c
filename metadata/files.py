"""The files of artifacts, in local folders and in object stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

SEPARATOR = "://"


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

    def _store_of(self, uri: str) -> ObjectFiles | None:
        return self._stores.get(uri.partition(SEPARATOR)[0]) if is_uri(uri) else None


LOCAL_FILES = Files()
"""Only those in local folders."""


def is_uri(location: str) -> bool:
    """Whether a location is a URI, not a local path."""
    return SEPARATOR in location
