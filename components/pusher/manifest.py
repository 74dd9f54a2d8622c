"""What a pushed version consists of and where it came from: its manifest, and what the metadata store records of a
push.

The custom properties of a PushedModel, by name:

pushed               1 or 0
pushed_destination   the version's folder; absent where nothing was pushed
pushed_version       its number, as text
pushed_digest        one SHA-256 for all its files
pushed_time          when it appeared, ISO 8601, UTC
not_pushed_reason    only where nothing was pushed
withdrawn_version    only where the reason is a rollback: the version that holds the model and can be restored
current_model        the folder of the model's artifact
current_model_id     its id
rolled_back_from     only for a rollback: the version that was served before it
restored_version     only for a rollback: the version whose content it pushed again

The first three are the names that TFX's Pusher uses; `current_model` and its id are those of TFX's Evaluator. Needs no
TensorFlow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from components.memo import content_digests, file_digest
from components.tflite.settings import MODEL_FILE
from contracts.errors import PushError
from contracts.model_reports import PathDifference

MANIFEST_FILE = "assets.extra/manifest.json"
"""The manifest's path within a version; TensorFlow and TensorFlow Serving leave `assets.extra` alone."""

MODEL_DIGEST_PROPERTY = "model_digest"
"""The property of an InfraBlessing with the digest of the files that were tried."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Origin(_Part):
    """Where a version's model came from.

    Attributes:
        model_id: The id of its Model artifact in the metadata store.
        model_uri: That artifact's folder.
        run_id: The run that pushed it.
        differences: How far the served model is from what was evaluated and trained, as the InfraValidator measured it.
            Not in the card: that is among the files whose digests say which model this is.
    """

    model_id: int
    model_uri: str
    run_id: str
    differences: list[PathDifference] = []


class Rollback(_Part):
    """Where a version made by a rollback comes from.

    Attributes:
        rolled_back_from: The version that was served before.
        restored_version: The version whose content this one repeats.
    """

    rolled_back_from: int
    restored_version: int


class Manifest(_Part):
    """A pushed version.

    Attributes:
        format: The version of this format.
        version: The version's number, which is its folder's name.
        pushed: When the version appeared, UTC.
        files: Path within the version -> SHA-256 in hexadecimal, for every file but this one.
        origin: Where its model came from.
        rollback: None if a run pushed the version.
        withdrawn: The `model_digest`s of versions that were rolled back from; no run pushes such a model again.
    """

    format: Literal[1] = 1
    version: int
    pushed: datetime
    files: dict[str, str]
    origin: Origin
    rollback: Rollback | None = None
    withdrawn: list[str] = []

    @property
    def digest(self) -> str:
        """One digest for all files."""
        return digest_of_files(self.files)

    @property
    def model_digest(self) -> str:
        """One digest for the files of the SavedModel."""
        return digest_of_files({path: value for path, value in self.files.items() if path != MODEL_FILE})


def digest_of_files(files: Mapping[str, str]) -> str:
    """The SHA-256 of what `sha256sum` would print for these files, in the order of their paths."""
    lines = "".join(f"{value}  {path}\n" for path, value in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def files_of(folder: Path) -> dict[str, str]:
    """Returns path -> SHA-256 in hexadecimal for every file below a folder except the manifest."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: file_digest(path) for name, path in named.items() if name != MANIFEST_FILE}


def check_files(folder: Path, expected: Mapping[str, str]) -> None:
    """Checks that a folder holds exactly these files.

    Raises:
        PushError: A file is missing, is not expected, or has other content.
    """
    present = files_of(folder)
    missing = sorted(set(expected) - set(present))
    surplus = sorted(set(present) - set(expected))
    changed = sorted(path for path in set(present) & set(expected) if present[path] != expected[path])
    faults = [
        *(f"{path} is missing" for path in missing),
        *(f"{path} is not expected" for path in surplus),
        *(f"{path} has the SHA-256 {present[path]}, expected {expected[path]}" for path in changed),
    ]
    if faults:
        raise PushError(f"{folder} is not what was to be written: {'; '.join(faults)}.")


def read_manifest(version: Path) -> Manifest | None:
    """The manifest of a version; None if the version has none.

    Raises:
        PushError: The manifest cannot be read.
    """
    path = version / MANIFEST_FILE
    if not path.is_file():
        return None
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise PushError(
            f"{path} is not a manifest: {error}", "Remove that version's folder if nobody needs it."
        ) from error


def damage_of(version: Path, memo_path: Path | None = None) -> str | None:
    """How a pushed version differs from what its manifest says, as the end of a sentence; None if it does not.

    Args:
        version: Its folder.
        memo_path: Where digests are remembered, as by `content_digests`.

    Raises:
        PushError: The manifest cannot be read.
    """
    if not version.is_dir():
        return "is gone"
    known = read_manifest(version)
    if known is None:
        return f"lacks {MANIFEST_FILE}"
    if missing := [name for name in known.files if not (version / name).is_file()]:
        return f"lacks {missing[0]}" + (f" and {len(missing) - 1:,} more" if len(missing) > 1 else "")
    now = content_digests([version / name for name in known.files], memo_path)
    changed = [name for name, digest in known.files.items() if now[version / name] != digest]
    return f"has another {changed[0]} than was pushed" if changed else None


def write_manifest(version: Path, manifest: Manifest) -> None:
    """Writes the manifest into a version's folder."""
    path = version / MANIFEST_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(manifest.model_dump_json(indent=2), encoding="utf-8")


NOT_SERVABLE = "the InfraValidator did not bless the model"

Properties = dict[str, str | int]


def pushed_properties(path: Path, manifest: Manifest) -> Properties:
    """The properties of a version that was pushed to `path`."""
    properties: Properties = {
        "pushed": 1,
        "pushed_destination": str(path),
        "pushed_version": str(manifest.version),
        "pushed_digest": manifest.digest,
        "pushed_time": manifest.pushed.isoformat(),
        "current_model": manifest.origin.model_uri,
        "current_model_id": manifest.origin.model_id,
    }
    if manifest.rollback:
        properties["rolled_back_from"] = manifest.rollback.rolled_back_from
        properties["restored_version"] = manifest.rollback.restored_version
    return properties


def not_pushed_properties(origin: Origin, reason: str, withdrawn_version: int | None = None) -> Properties:
    """The properties of a push that did not happen."""
    withdrawn: Properties = {} if withdrawn_version is None else {"withdrawn_version": withdrawn_version}
    return withdrawn | {
        "pushed": 0,
        "not_pushed_reason": reason,
        "current_model": origin.model_uri,
        "current_model_id": origin.model_id,
    }
