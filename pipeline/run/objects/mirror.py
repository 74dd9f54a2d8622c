"""A local mirror of artifacts in an object store: downloaded when they are needed, uploaded when they are made.

A local file counts as a copy of the object only if its size is the object's and its modification time was set to the
object's, which is the last step of a download or upload. So whatever a killed process, another store, or another
history of the same store left in the same place is downloaded again.
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
"""A folder in the cache for downloads that are not complete yet."""


class Mirror:
    """The artifacts of an object root; see `metadata.files.ObjectFiles`.

    Args:
        root: The root.
        settings: How to reach the store, and where the cache is.
        patient: Whether to wait about a minute for a store that is down.
    """

    def __init__(self, root: ObjectRoot, settings: ObjectStoreSettings, patient: bool = False) -> None:
        self.root = root
        self.settings = settings
        self.patient = patient
        self.cache = settings.cache
        self._store = ObjectStore(root, settings, patient)
        # Published artifacts never change: what has been mirrored once need not be checked again.
        self._mirrored: set[str] = set()

    def path_of(self, uri: str) -> Path:
        """The local path of an artifact in this kind of store; other locations are returned as they are."""
        scheme = f"{self.root.scheme}{files.SEPARATOR}"
        return self.cache / self.root.scheme / uri.removeprefix(scheme) if uri.startswith(scheme) else Path(uri)

    def uri_of(self, path: str) -> str:
        """The URI of a location in the cache; other locations are returned as they are."""
        cached = PurePosixPath(path)
        if not cached.is_relative_to(self.cache / self.root.scheme):
            return path
        return f"{self.root.scheme}{files.SEPARATOR}{cached.relative_to(self.cache / self.root.scheme)}"

    def download(self, uri: str) -> Path:
        """Downloads an artifact to the cache and returns its path; artifacts stored elsewhere are left alone.

        Raises:
            ObjectStoreError: The store is down, refuses us, or has no such artifact.
            OSError: The cache cannot be written to.
        """
        path = self.folder(uri)
        if not self._is_foreign(uri) and not self._is_mirrored(uri):
            raise ObjectStoreError(
                f"{uri} is not in the object store (any more), and a node needs it.",
                "Run the pipeline again: the node that made it will run again.",
            )
        return path

    def folder(self, uri: str) -> Path:
        """See `metadata.files.ObjectFiles`."""
        path = self.path_of(uri)
        tree = None if self._is_foreign(uri) or self._is_mirrored(uri) else self._store.tree(_place(uri))
        if tree is not None:
            self._make_equal(uri, path, tree)
        return path

    def file(self, uri: str, name: str) -> Path:
        """See `metadata.files.ObjectFiles`."""
        path = self.path_of(uri) / name
        file_uri = f"{uri}/{name}"
        if (
            self._is_foreign(uri)
            or self._is_mirrored(uri)
            or self._is_mirrored(file_uri)
            or ".." in PurePosixPath(name).parts
        ):
            return path
        stat = self._store.stat(_place(file_uri))
        if stat is None:
            if path.is_file():
                path.unlink()
            return path
        if not _is(path, stat):
            self._download_file(_place(file_uri), path, stat)
        self._mirrored.add(file_uri)
        return path

    def sizes(self, uri: str) -> Sequence[tuple[str, int]] | None:
        """See `metadata.files.ObjectFiles`."""
        tree = self._store.tree(_place(uri))
        return None if tree is None else sorted((name, stat.size) for name, stat in tree.files.items())

    def gone(self, uris: Collection[str]) -> set[str]:
        """See `metadata.files.ObjectFiles`."""
        listed = list(uris)
        existing = self._store.map_parallel(self._store.exists, map(_place, listed))
        return {uri for uri, exists in zip(listed, existing, strict=True) if not exists}

    def all_sizes(self, uris: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]] | None]:
        """See `metadata.files.ObjectFiles`."""
        listed = list(uris)
        return dict(zip(listed, self._store.map_parallel(self.sizes, listed), strict=True))

    def upload(self, uri: str) -> None:
        """Uploads an artifact that was made in the cache, replacing whatever the store has under its name.

        Raises:
            ObjectStoreError: The store is down, or refuses us; what was uploaded until then stays there.
        """
        path, place = self.path_of(uri), _place(uri)
        paths = sorted(path.rglob("*"))
        names = {file.relative_to(path).as_posix(): file for file in paths if file.is_file()}
        self._store.map_parallel(lambda name: self._store.upload(names[name], f"{place}/{name}"), names)
        for folder in [path, *(child for child in paths if child.is_dir())]:
            if not any(folder.iterdir()):
                self._store.make_folder(f"{place}/{folder.relative_to(path)}".removesuffix("/."))
        self._verify_upload(uri, names)

    def remove_uploaded(self, node: str, execution: int) -> None:
        """Removes from the store what an execution of a node had uploaded, but not what it made in the cache.

        Args:
            node: The node's folder in the cache.
            execution: The execution's id.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        place = _place(self.uri_of(node))
        for output in self._store.folders(place):
            self._store.remove(f"{place}/{output}/{execution}")

    def discard_upload(self, uri: str) -> None:
        """Removes a partly uploaded artifact from the store.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        self._store.remove(_place(uri))

    def make_empty(self, uri: str) -> Path:
        """Creates an empty folder for an artifact about to be made, removing what an earlier one of its name left."""
        path = self.path_of(uri)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        self._mirrored.discard(uri)
        return path

    def probe(self) -> None:
        """See `ObjectStore.probe`.

        Raises:
            ObjectStoreError: The store is down, or refuses us.
        """
        self._store.probe()

    def _is_mirrored(self, uri: str) -> bool:
        if uri in self._mirrored and not self.path_of(uri).exists():
            # The cache has been emptied since.
            self._mirrored.discard(uri)
        return uri in self._mirrored

    def _is_foreign(self, uri: str) -> bool:
        return not uri.startswith(f"{self.root.scheme}{files.SEPARATOR}")

    def _make_equal(self, uri: str, path: Path, tree: Tree) -> None:
        local_files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if not file.is_dir()}
        for name in local_files.keys() - tree.files.keys():
            local_files[name].unlink()
        for folder in ["", *tree.folders]:
            (path / folder).mkdir(parents=True, exist_ok=True)
        missing = [name for name, stat in tree.files.items() if not _is(path / name, stat)]
        self._store.map_parallel(
            lambda name: self._download_file(f"{_place(uri)}/{name}", path / name, tree.files[name]), missing
        )
        self._mirrored.add(uri)

    def _download_file(self, place: str, path: Path, stat: Stat) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path, folder=self.cache / PARTIAL_FOLDER) as partial_path:
            self._store.download(place, partial_path)
            _mark(partial_path, stat)

    def _verify_upload(self, uri: str, names: Mapping[str, Path]) -> None:
        """Checks that the store has what was uploaded, and removes what an earlier artifact of its name left."""
        tree = self._store.tree(_place(uri))
        stats = tree.files if tree else {}
        for name in stats.keys() - names.keys():
            self._store.remove_object(f"{_place(uri)}/{name}")
        short = [name for name, file in names.items() if name not in stats or stats[name].size != file.stat().st_size]
        if short:
            raise ObjectStoreError(
                f"{uri}/{short[0]} was uploaded, but the object store has it with another size.",
                "Let nothing else write there.",
            )
        for name, file in names.items():
            _mark(file, stats[name])
        self._mirrored.add(uri)


def _place(uri: str) -> str:
    return uri.partition(files.SEPARATOR)[2]


def _mark(path: Path, stat: Stat) -> None:
    changed = stat.changed * NANOSECONDS
    os.utime(path, ns=(changed, changed))


def _is(path: Path, stat: Stat) -> bool:
    """Whether a file is a copy of the object: only `_mark` sets a time of whole seconds, without nanoseconds."""
    try:
        local = path.stat()
    except FileNotFoundError:
        return False
    return (local.st_size, local.st_mtime_ns) == (stat.size, stat.changed * NANOSECONDS)
