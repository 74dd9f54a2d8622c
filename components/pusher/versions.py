"""The folder of a served model's versions: each appears whole, by a rename, and can be gone back to.

`<base>/<version>/` is a SavedModel with a manifest; the highest number is served. Nothing here needs TensorFlow.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from components.memo import file_digest
from components.pusher import manifest
from components.pusher.manifest import Manifest, Origin, Rollback
from components.tflite.settings import MODEL_FILE
from contracts.errors import PushError

ERRNO = re.compile(r"\[Errno (\d+)\] ")
FIXES = {
    errno.EACCES: "Give this user the right to write there, or set serving_root in the environment.",
    errno.EPERM: "Give this user the right to write there, or set serving_root in the environment.",
    errno.EROFS: "It lies on a file system that is mounted read-only; set serving_root in the environment.",
    errno.ENOSPC: "Free some space, or lower pusher.keep_versions.",
    errno.EDQUOT: "Free some space, or lower pusher.keep_versions.",
    errno.ENOTDIR: "A file is in the place of a folder; move it away.",
    errno.EEXIST: "A file is in the place of a folder; move it away.",
}


@contextmanager
def translated_errors(base: Path) -> Iterator[None]:
    """Tells what the operating system refused, and what can be done about it.

    Args:
        base: What was to be written.

    Raises:
        PushError: The operating system refused something.
    """
    try:
        yield
    except shutil.Error as error:
        # copytree collects what went wrong with each file, as text; the first says it.
        what = str(error.args[0][0][2])
        number = ERRNO.match(what)
        fix = FIXES.get(int(number[1])) if number else None
        raise PushError(f"The model cannot be written to {base}: {ERRNO.sub('', what)}.", fix) from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PushError(
            f"The model cannot be written to {base}: {error.strerror or error}{where}.", FIXES.get(error.errno or 0)
        ) from error


def link_or_copy(source: str, target: str) -> None:
    """Makes `target` another name of the file `source`; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def fsync_tree(folder: Path) -> None:
    """Forces a folder with all that is in it to the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            fsync_path(Path(parent, name))
        fsync_path(Path(parent))


def fsync_path(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


STAGING_PREFIX = ".incoming-"
"""Folders of this name are pushes under way; model servers take only folders with a number for a name."""


@dataclass(frozen=True)
class Version:
    """A version in a serving folder.

    Attributes:
        number: Its number.
        path: Its folder.
        manifest: None where it was not written by this pusher.
    """

    number: int
    path: Path
    manifest: Manifest | None

    @property
    def content(self) -> str:
        """What two versions of the same content have in common."""
        return self.manifest.digest if self.manifest else str(self.number)


def find_versions(base: Path) -> list[Version]:
    """The versions in a serving folder, oldest first; the last one is served.

    Raises:
        PushError: The folder or a manifest cannot be read.
    """
    if not base.is_dir():
        return []
    with translated_errors(base):
        folders = sorted(
            (int(entry.name), entry)
            for entry in base.iterdir()
            if entry.name.isascii() and entry.name.isdecimal() and entry.is_dir()
        )
        return [Version(number, path, manifest.read_manifest(path)) for number, path in folders]


def push_version(
    model: Path, base: Path, keep_versions: int, origin: Origin, tflite_model: Path | None = None
) -> tuple[Path, Manifest]:
    """Copies `model` to a new version under `base`, and removes old ones; see `prune`.

    A TF Lite model goes with it as `model.tflite`, which TF Serving takes when run with `--prefer_tflite_model`. The
    copy is written beside the versions, compared with the digests of what was copied, forced to the disk and renamed,
    so that a server which polls `base` never sees half a model. Where the served version has the same content already,
    that one is returned and nothing is written.

    Returns:
        The version's folder and its manifest. Versions are seconds since 1970, as TF Serving's users expect, and always
        increase.

    Raises:
        PushError: The folder cannot be written, or the copy is not what was copied.
    """
    files = manifest.files_of(model)
    if tflite_model is not None:
        files[MODEL_FILE] = file_digest(tflite_model)
    existing = find_versions(base)
    served = existing[-1] if existing else None
    if served and served.manifest and served.manifest.digest == manifest.digest_of_files(files):
        return served.path, served.manifest

    def fill(staging: Path) -> None:
        shutil.copytree(model, staging)
        if tflite_model is not None:
            shutil.copyfile(tflite_model, staging / MODEL_FILE)

    withdrawn = withdrawn_models(existing)
    path, written = _publish(base, existing, fill, _new(existing, files, origin, None, withdrawn))
    prune_versions(base, keep_versions)
    return path, written


def restore_version(base: Path, restored: Version, served: Version) -> tuple[Path, Manifest]:
    """Pushes the content of an older version again, under a new number; like `git revert` it takes nothing away.

    The files are hard links where the file system has them. Models that runs pushed after `restored` are withdrawn;
    so a rollback of a rollback withdraws nothing.

    Args:
        base: The folder of the versions.
        restored: A version with a manifest.
        served: The version that is served now.

    Returns:
        The new version's folder and its manifest.

    Raises:
        PushError: The folder cannot be written, or the older version is not what its manifest says.
    """
    kept = restored.manifest
    if kept is None:
        raise PushError(
            f"{restored.path} has no manifest: nobody can tell whether it is what was pushed.",
            "Choose a version that the Pusher wrote.",
        )
    existing = find_versions(base)
    manifests = [version.manifest for version in existing if version.manifest]
    later = {m.model_digest for m in manifests if m.version > restored.number and m.rollback is None}
    withdrawn = sorted((later | set(withdrawn_models(existing))) - {kept.model_digest})
    rollback = Rollback(rolled_back_from=served.number, restored_version=restored.number)
    return _publish(
        base,
        existing,
        lambda staging: _linked(restored.path, staging),
        _new(existing, kept.files, kept.origin, rollback, withdrawn),
    )


def withdrawn_models(existing: list[Version]) -> list[str]:
    """The `model_digest`s that were rolled back from, as far as their versions are still there to be restored."""
    served = existing[-1].manifest if existing else None
    there = {version.manifest.model_digest for version in existing if version.manifest}
    return [digest for digest in served.withdrawn if digest in there] if served else []


def prune_versions(base: Path, keep_versions: int) -> None:
    """Removes old versions: all but the newest `keep_versions`, and the newest of as many different contents.

    So a rollback, which makes a second version of the same content, never costs a version to go back to.
    """
    existing = find_versions(base)
    kept = {version.number for version in existing[-keep_versions:]}
    newest_of = {version.content: version.number for version in existing}
    kept |= set(sorted(newest_of.values())[-keep_versions:])
    with translated_errors(base):
        for version in existing:
            if version.number not in kept:
                shutil.rmtree(version.path)


def _new(
    existing: list[Version],
    files: dict[str, str],
    origin: Origin,
    rollback: Rollback | None,
    withdrawn: list[str],
) -> Manifest:
    """The manifest of the next version."""
    now = time.time()
    return Manifest(
        version=max(int(now), existing[-1].number + 1 if existing else 0),
        pushed=datetime.fromtimestamp(now, timezone.utc),
        files=files,
        origin=origin,
        rollback=rollback,
        withdrawn=withdrawn,
    )


def _publish(
    base: Path, existing: list[Version], fill: Callable[[Path], None], made: Manifest
) -> tuple[Path, Manifest]:
    """Makes a version of what `fill` writes, if that is what the manifest says."""
    target = base / str(made.version)
    staging = base / f"{STAGING_PREFIX}{uuid.uuid4().hex}"
    with translated_errors(base):
        base.mkdir(parents=True, exist_ok=True)
        for abandoned in base.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(abandoned)
        try:
            fill(staging)
            manifest.check_files(staging, made.files)
            manifest.write_manifest(staging, made)
            fsync_tree(staging)
            os.replace(staging, target)
        except BaseException:
            # A full disk is not left fuller; what went wrong is told, not that this failed too.
            shutil.rmtree(staging, ignore_errors=True)
            raise
        fsync_path(base)
    return target, made


def _linked(source: Path, target: Path) -> None:
    """A copy of a folder whose files share the originals' bytes; real copies where the file system has no links."""
    shutil.copytree(source, target, copy_function=link_or_copy)
    # The copy has a manifest of its own; through the link it would be written into the original's.
    (target / manifest.MANIFEST_FILE).unlink()
