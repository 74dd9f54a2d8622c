"""Artifacts of an object store in a folder of this machine: brought when they are needed, sent when they are made.

A file here stands for the object only where its size is the object's and its time of change was set to the object's,
which is the last thing that is done to a file that was brought or sent: what a killed process left is brought anew, and
so is what another store, or another history of the same one, left in the same place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

from contracts import atomic
from metadata import files
from pipeline.plan.object_store_settings import ObjectRoot, ObjectStoreSettings
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.objects.object_store import ObjectStore, Stat, Tree

NANOSECONDS = 10**9

PARTIAL_FOLDER = ".partial"
"""Of the cache: what is on its way, until it is whole."""


class Mirror:
    """The artifacts of an object root; see `metadata.files.ObjectFiles`.

    Args:
        root: The root.
        settings: How the store is reached, and where the cache is.
        patient: Whether to wait for about a minute for a store that is away.
    """

    def __init__(self, root: ObjectRoot, settings: ObjectStoreSettings, patient: bool = False) -> None:
        self.root = root
        self.settings = settings
        self.patient = patient
        self.cache = settings.cache
        self._store = ObjectStore(root, settings, patient)
        # Artifacts never change once they are published: what was found to be here need not be asked for again.
        self._here: set[str] = set()

    def path_of(self, uri: str) -> Path:
        """Where an artifact of this kind of store is worked with; others are where they are."""
        scheme = f"{self.root.scheme}{files.SEPARATOR}"
        return self.cache / self.root.scheme / uri.removeprefix(scheme) if uri.startswith(scheme) else Path(uri)

    def uri_of(self, path: str) -> str:
        """What a location in the cache is called in the store; others are called as they are."""
        cached = PurePosixPath(path)
        if not cached.is_relative_to(self.cache / self.root.scheme):
            return path
        return f"{self.root.scheme}{files.SEPARATOR}{cached.relative_to(self.cache / self.root.scheme)}"

    def bring(self, uri: str) -> Path:
        """An artifact as its store has it, in the cache; nothing is asked for an artifact of another place.

        Raises:
            ObjectStoreError: The store is away, refuses us, or has no such artifact.
            OSError: The cache cannot be written to.
        """
        path = self.folder(uri)
        if not self._is_foreign(uri) and not self._is_here(uri):
            raise ObjectStoreError(
                f"{uri} is not in the object store (any more), and a node takes it.",
                "Run the pipeline anew: the node that made it runs again.",
            )
        return path

    def folder(self, uri: str) -> Path:
        """See `metadata.files.ObjectFiles`."""
        path = self.path_of(uri)
        tree = None if self._is_foreign(uri) or self._is_here(uri) else self._store.tree(_place(uri))
        if tree is not None:
            self._make_equal(uri, path, tree)
        return path

    def file(self, uri: str, name: str) -> Path:
        """See `metadata.files.ObjectFiles`."""
        path = self.path_of(uri) / name
        whole = f"{uri}/{name}"
        if self._is_foreign(uri) or self._is_here(uri) or self._is_here(whole) or ".." in PurePosixPath(name).parts:
            return path
        stat = self._store.stat(_place(whole))
        if stat is None:
            if path.is_file():
                path.unlink()
            return path
        if not _is(path, stat):
            self._download(_place(whole), path, stat)
        self._here.add(whole)
        return path

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """See `metadata.files.ObjectFiles`."""
        tree = self._store.tree(_place(uri))
        return None if tree is None else sorted((name, stat.size) for name, stat in tree.files.items())

    def gone(self, uris: Collection[str]) -> set[str]:
        """See `metadata.files.ObjectFiles`."""
        asked = list(uris)
        there = self._store.at_once(self._store.exists, map(_place, asked))
        return {uri for uri, exists in zip(asked, there, strict=True) if not exists}

    def send(self, uri: str) -> None:
        """Puts an artifact that was made in the cache into the store, in place of whatever is there.

        Raises:
            ObjectStoreError: The store is away, or refuses us; what was sent until then lies there.
        """
        path, place = self.path_of(uri), _place(uri)
        made = sorted(path.rglob("*"))
        names = {file.relative_to(path).as_posix(): file for file in made if file.is_file()}
        self._store.at_once(lambda name: self._store.upload(names[name], f"{place}/{name}"), names)
        for folder in [path, *(found for found in made if found.is_dir())]:
            if not any(folder.iterdir()):
                self._store.make_folder(f"{place}/{folder.relative_to(path)}".removesuffix("/."))
        self._settle(uri, names)

    def remove_made(self, node: str, execution: int) -> None:
        """Removes from the store what an execution of a node had sent; what it made in the cache is not touched.

        Args:
            node: The node's folder in the cache.
            execution: The execution's id.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        place = _place(self.uri_of(node))
        for output in self._store.folders(place):
            self._store.remove(f"{place}/{output}/{execution}")

    def take_back(self, uri: str) -> None:
        """Removes from the store what was sent of an artifact that is not whole there.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        self._store.remove(_place(uri))

    def empty(self, uri: str) -> Path:
        """The folder for an artifact that is to be made, without what an earlier one of its name left."""
        path = self.path_of(uri)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        self._here.discard(uri)
        return path

    def probe(self) -> None:
        """See `ObjectStore.probe`.

        Raises:
            ObjectStoreError: The store is away, or refuses us.
        """
        self._store.probe()

    def _is_here(self, uri: str) -> bool:
        if uri in self._here and not self.path_of(uri).exists():
            # The cache was emptied since.
            self._here.discard(uri)
        return uri in self._here

    def _is_foreign(self, uri: str) -> bool:
        return not uri.startswith(f"{self.root.scheme}{files.SEPARATOR}")

    def _make_equal(self, uri: str, path: Path, tree: Tree) -> None:
        here = {found.relative_to(path).as_posix(): found for found in path.rglob("*") if not found.is_dir()}
        for name in here.keys() - tree.files.keys():
            here[name].unlink()
        for folder in ["", *tree.folders]:
            (path / folder).mkdir(parents=True, exist_ok=True)
        wanted = [name for name, stat in tree.files.items() if not _is(path / name, stat)]
        self._store.at_once(lambda name: self._download(f"{_place(uri)}/{name}", path / name, tree.files[name]), wanted)
        self._here.add(uri)

    def _download(self, place: str, path: Path, stat: Stat) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path, folder=self.cache / PARTIAL_FOLDER) as partial_path:
            self._store.download(place, partial_path)
            _mark(partial_path, stat)

    def _settle(self, uri: str, names: Mapping[str, Path]) -> None:
        """Looks at what was sent as the store has it now, and removes what an earlier artifact of its name left."""
        found = self._store.tree(_place(uri))
        stats = found.files if found else {}
        for name in stats.keys() - names.keys():
            self._store.remove_object(f"{_place(uri)}/{name}")
        short = [name for name, file in names.items() if name not in stats or stats[name].size != file.stat().st_size]
        if short:
            raise ObjectStoreError(
                f"{uri}/{short[0]} was sent, and the object store has it otherwise.", "Let nothing else write there."
            )
        for name, file in names.items():
            _mark(file, stats[name])
        self._here.add(uri)


def _place(uri: str) -> str:
    return uri.partition(files.SEPARATOR)[2]


def _mark(path: Path, stat: Stat) -> None:
    changed = stat.changed * NANOSECONDS
    os.utime(path, ns=(changed, changed))


def _is(path: Path, stat: Stat) -> bool:
    """Whether a file is the object: to the nanosecond, of which only `_mark` leaves none over."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return (found.st_size, found.st_mtime_ns) == (stat.size, stat.changed * NANOSECONDS)
