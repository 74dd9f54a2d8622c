"""The files of artifacts: those in folders of this machine, and those that stores of objects hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

SEPARATOR = "://"


class UnavailableError(Exception):
    """What holds the files cannot be reached now, or refuses us; the text says why."""


class ObjectFiles(Protocol):
    """The artifacts in a store of objects; they are named by the URIs of the metadata store.

    All of these may raise an `UnavailableError`.
    """

    def whole(self, uri: str) -> Path:
        """The folder of an artifact with all its files in it; a folder that is not there for one that is gone."""

    def file(self, uri: str, name: str) -> Path:
        """One file of an artifact; a path that is not there where the artifact has none of that name."""

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """All files of an artifact, each by its name below the artifact, and their bytes; None for one that is gone."""

    def gone(self, uris: Collection[str]) -> set[str]:
        """Those that are not there (any more)."""


class Files:
    """The files of artifacts as paths of this machine, wherever they are stored.

    Args:
        stores: The stores of objects by the scheme of their URIs, such as `s3`; artifacts of others count as gone.
    """

    def __init__(self, stores: Mapping[str, ObjectFiles] | None = None) -> None:
        self._stores = dict(stores or {})

    def whole(self, uri: str) -> Path:
        """The folder of an artifact with all its files in it; a folder that is not there for one that is gone.

        Raises:
            UnavailableError: What holds it cannot be reached.
        """
        store = self._store_of(uri)
        return store.whole(uri) if store else Path(uri)

    def file(self, uri: str, name: str) -> Path:
        """One file of an artifact; a path that is not there where the artifact has none of that name.

        Raises:
            UnavailableError: What holds it cannot be reached.
        """
        store = self._store_of(uri)
        return store.file(uri, name) if store else Path(uri, name)

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """The files of an artifact in a store of objects, with their bytes; None for one that is gone, or in a folder.

        Raises:
            UnavailableError: What holds it cannot be reached.
        """
        store = self._store_of(uri)
        return store.sizes(uri) if store else None

    def gone(self, uris: Collection[str]) -> set[str]:
        """Those of some artifacts that are not there (any more).

        Raises:
            UnavailableError: What holds them cannot be reached.
        """
        gone = {uri for uri in uris if self._store_of(uri) is None and not Path(uri).exists()}
        for scheme, store in self._stores.items():
            if theirs := [uri for uri in uris if uri.startswith(f"{scheme}{SEPARATOR}")]:
                gone |= store.gone(theirs)
        return gone

    def _store_of(self, uri: str) -> ObjectFiles | None:
        return self._stores.get(uri.partition(SEPARATOR)[0]) if is_uri(uri) else None


LOCAL_FILES = Files()
"""Those in folders alone."""


def is_uri(location: str) -> bool:
    """Whether a location is a URI, and no path of this machine."""
    return SEPARATOR in location
