"""The folder of a served model's versions: each appears whole, by a rename, and can be restored later.

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
    """Turns the operating system's errors into a PushError that says what was refused and how to mend it.

    Args:
        base: The folder that was to be written.

    Raises:
        PushError: The operating system refused something.
    """
    try:
        yield
    except shutil.Error as error:
        # copytree collects the errors of all files as text; the first one is enough.
        message = str(error.args[0][0][2])
        number = ERRNO.match(message)
        fix = FIXES.get(int(number[1])) if number else None
        raise PushError(f"The model cannot be written to {base}: {ERRNO.sub('', message)}.", fix) from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PushError(
            f"The model cannot be written to {base}: {error.strerror or error}{where}.", FIXES.get(error.errno or 0)
        ) from error


def link_or_copy(source: str, target: str) -> None:
    """Hard-links `target` to the file `source`; copies it where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def fsync_tree(folder: Path) -> None:
    """Flushes a folder and everything in it to disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            fsync_path(Path(parent, name))
        fsync_path(Path(parent))


def fsync_path(path: Path) -> None:
    """Flushes a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


STAGING_PREFIX = ".incoming-"
"""Folders with this prefix are pushes in progress; model servers load only folders whose name is a number."""


@dataclass(frozen=True)
class Version:
    """A version in a serving folder.

    Attributes:
        number: Its number.
        path: Its folder.
        manifest: Its manifest; None if this pusher did not write it.
    """

    number: int
    path: Path
    manifest: Manifest | None

    @property
    def content(self) -> str:
        """Identifies the content: two versions with the same content share it."""
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
    """Copies `model` to a new version under `base` and removes old ones; see `prune_versions`.

    A TF Lite model goes with it as `model.tflite`, which TF Serving loads when run with `--prefer_tflite_model`. The
    copy is written beside the versions, compared with the digests of the original, flushed to disk and renamed, so that
    a server that polls `base` never sees half a model. If the served version already has the same content, nothing is
    written and that version is returned.

    Returns:
        The version's folder and its manifest. Versions are seconds since 1970, as TF Serving's users expect, and always
        increase.

    Raises:
        PushError: The folder cannot be written, or the copy differs from the original.
    """
    files = manifest.files_of(model)
    if tflite_model is not None:
        files[MODEL_FILE] = file_digest(tflite_model)
    existing = find_versions(base)
    served = existing[-1] if existing else None
    # By the files themselves, of which someone may have removed some.
    if served and served.manifest and served.manifest.files == files == manifest.files_of(served.path):
        return served.path, served.manifest

    def fill(staging: Path) -> None:
        shutil.copytree(model, staging)
        if tflite_model is not None:
            shutil.copyfile(tflite_model, staging / MODEL_FILE)

    withdrawn = withdrawn_models(existing)
    path, new_manifest = _publish(base, existing, fill, _next_manifest(existing, files, origin, None, withdrawn))
    prune_versions(base, keep_versions)
    return path, new_manifest


def restore_version(base: Path, restored: Version, served: Version) -> tuple[Path, Manifest]:
    """Pushes the content of an older version again, under a new number; like `git revert`, it removes nothing.

    The files are hard links where the file system has them. Models that runs pushed after `restored` are withdrawn, so
    a rollback of a rollback withdraws nothing.

    Args:
        base: The folder of the versions.
        restored: A version with a manifest.
        served: The version that is served now.

    Returns:
        The new version's folder and its manifest.

    Raises:
        PushError: The folder cannot be written, or the older version differs from its manifest.
    """
    restored_manifest = restored.manifest
    if restored_manifest is None:
        raise PushError(
            f"{restored.path} has no manifest, so nothing shows whether it is what was pushed.",
            "Choose a version that the Pusher wrote.",
        )
    existing = find_versions(base)
    manifests = [version.manifest for version in existing if version.manifest]
    later = {m.model_digest for m in manifests if m.version > restored.number and m.rollback is None}
    withdrawn = sorted((later | set(withdrawn_models(existing))) - {restored_manifest.model_digest})
    rollback = Rollback(rolled_back_from=served.number, restored_version=restored.number)
    return _publish(
        base,
        existing,
        lambda staging: _copy_by_links(restored.path, staging),
        _next_manifest(existing, restored_manifest.files, restored_manifest.origin, rollback, withdrawn),
    )


def withdrawn_models(existing: list[Version]) -> list[str]:
    """The `model_digest`s of models that were rolled back from and whose versions can still be restored."""
    served = existing[-1].manifest if existing else None
    present = {version.manifest.model_digest for version in existing if version.manifest}
    return [digest for digest in served.withdrawn if digest in present] if served else []


def prune_versions(base: Path, keep_versions: int) -> None:
    """Removes all versions but the newest `keep_versions` and the newest of each of as many different contents.

    So a rollback, which makes a second version of the same content, never costs a version to go back to.
    """
    existing = find_versions(base)
    kept_numbers = {version.number for version in existing[-keep_versions:]}
    newest_of = {version.content: version.number for version in existing}
    kept_numbers |= set(sorted(newest_of.values())[-keep_versions:])
    with translated_errors(base):
        for version in existing:
            if version.number not in kept_numbers:
                shutil.rmtree(version.path)


def _next_manifest(
    existing: list[Version],
    files: dict[str, str],
    origin: Origin,
    rollback: Rollback | None,
    withdrawn: list[str],
) -> Manifest:
    """Builds the manifest of the next version."""
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
    base: Path, existing: list[Version], fill: Callable[[Path], None], new_manifest: Manifest
) -> tuple[Path, Manifest]:
    """Makes a version of what `fill` writes, provided that it matches the manifest."""
    target = base / str(new_manifest.version)
    staging = base / f"{STAGING_PREFIX}{uuid.uuid4().hex}"
    with translated_errors(base):
        base.mkdir(parents=True, exist_ok=True)
        for abandoned in base.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(abandoned)
        try:
            fill(staging)
            manifest.check_files(staging, new_manifest.files)
            manifest.write_manifest(staging, new_manifest)
            fsync_tree(staging)
            os.replace(staging, target)
        except BaseException:
            # A full disk is not left fuller; the original error is reported, not a failure of this cleanup.
            shutil.rmtree(staging, ignore_errors=True)
            raise
        fsync_path(base)
    return target, new_manifest


def _copy_by_links(source: Path, target: Path) -> None:
    """Copies a folder as hard links to its files, or as real copies where the file system has no links."""
    shutil.copytree(source, target, copy_function=link_or_copy)
    # The copy gets its own manifest; through the link, writing it would overwrite the original's.
    (target / manifest.MANIFEST_FILE).unlink()
