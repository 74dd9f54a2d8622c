"""The files of artifacts: where they lie, for those that lie in folders, and how others are come by.

Whoever knows a store of objects says so with `provide`; what reads artifacts asks here, and gets paths of this machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

SEPARATOR = "://"


class UnavailableError(Exception):
    """What holds the files cannot be reached now, or refuses us; the text says why."""


class Files(Protocol):
    """What holds artifacts; they are named by the URIs of the metadata store.

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


_elsewhere: dict[str, Files] = {}


def provide(scheme: str, files: Files) -> None:
    """Says how this process comes by the artifacts whose URIs begin with `scheme`, such as `s3`."""
    _elsewhere[scheme] = files


def is_elsewhere(uri: str) -> bool:
    """Whether a location is a URI, and no path of this machine."""
    return SEPARATOR in uri


def whole(uri: str) -> Path:
    """The folder of an artifact with all its files in it; a folder that is not there for one that is gone.

    Raises:
        UnavailableError: What holds it cannot be reached.
    """
    holder = _holder(uri)
    return holder.whole(uri) if holder else Path(uri)


def file(uri: str, name: str) -> Path:
    """One file of an artifact; a path that is not there where the artifact has none of that name.

    Raises:
        UnavailableError: What holds it cannot be reached.
    """
    holder = _holder(uri)
    return holder.file(uri, name) if holder else Path(uri, name)


def sizes(uri: str) -> Sequence[tuple[str, int]] | None:
    """The files of an artifact that lies elsewhere, with their bytes; None for one that is gone, or lies in a folder.

    Raises:
        UnavailableError: What holds it cannot be reached.
    """
    holder = _holder(uri)
    return holder.sizes(uri) if holder else None


def gone(uris: Collection[str]) -> set[str]:
    """Those of some artifacts that are not there (any more).

    Raises:
        UnavailableError: What holds them cannot be reached.
    """
    found = {uri for uri in uris if _holder(uri) is None and not Path(uri).exists()}
    for scheme, holder in _elsewhere.items():
        if theirs := [uri for uri in uris if uri.startswith(f"{scheme}{SEPARATOR}")]:
            found |= holder.gone(theirs)
    return found


def _holder(uri: str) -> Files | None:
    return _elsewhere.get(uri.partition(SEPARATOR)[0]) if SEPARATOR in uri else None
