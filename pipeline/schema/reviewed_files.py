"""Files that people review: replaced atomically, and never over another's change; and rejected schema changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from contracts import atomic, yaml_settings
from contracts.errors import MillraceError
from contracts.settings import Settings
from pipeline.plan import project


def replace_file(path: Path, before: str | None, after: str) -> None:
    """Replaces a file's text; a concurrent reader sees either the old text or the new one.

    Args:
        path: The file; its folder is created if missing.
        before: The text that `after` was derived from; None for no file.
        after: The new text.

    Raises:
        MillraceError: The file's text has changed meanwhile.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic.replacing(path) as staging:
        staging.write_text(after, encoding="utf-8", newline="")
        if reviewed_text(path) != before:
            raise MillraceError(
                f"{project.relative_path(path)} was changed meanwhile; nothing was written.", "Try again."
            )


def reviewed_text(path: Path) -> str | None:
    """A file's text with its line endings unchanged; None if there is no file."""
    return path.read_bytes().decode("utf-8") if path.exists() else None


REJECTED_FILE = "rejected.yaml"
_HEADER = """\
# Changes to schema.pbtxt that the data called for but that are not wanted: `millrace schema propose` leaves them out.
# Written by `millrace schema reject`; remove an entry to have its change proposed again.
rejected:
"""


class Rejection(Settings):
    """A change that is not wanted.

    Attributes:
        feature: The feature's name.
        changes: The settings or values, as they would be written in the schema.
        reason: Why not.
        run: The run whose data called for it.
    """

    feature: str
    changes: tuple[str, ...]
    reason: str
    run: str


class Rejections(Settings):
    """The contents of a rejected.yaml.

    Attributes:
        rejected: The rejections, oldest first.
    """

    rejected: tuple[Rejection, ...] = ()


def read_rejections(path: Path) -> dict[str, frozenset[str]]:
    """Reads the changes that are not wanted, by feature; empty if there is no file.

    Raises:
        SettingsError: The file is not what `Rejections` describes.
    """
    by_feature: dict[str, frozenset[str]] = {}
    if path.exists():
        for entry in yaml_settings.load(Rejections, path).rejected:
            by_feature[entry.feature] = by_feature.get(entry.feature, frozenset()) | frozenset(entry.changes)
    return by_feature


def add_rejections(path: Path, changes: Mapping[str, tuple[str, ...]], reason: str, run: str) -> None:
    """Appends an entry for each feature to the file, leaving the rest of it as it is, comments included.

    Args:
        path: The file; created if missing.
        changes: The changes by feature.
        reason: Why they are not wanted.
        run: The run whose data called for them.

    Raises:
        MillraceError: The file is written in a way that does not allow appending.
    """
    before = reviewed_text(path)
    text = (before or _HEADER).rstrip()
    entries = [{"feature": f, "changes": list(c), "reason": reason, "run": run} for f, c in changes.items()]
    added = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=110)
    indented = "".join(f"  {line}\n" for line in added.splitlines())
    try:
        parsed = yaml.safe_load(f"{text}\n{indented}")
    except yaml.YAMLError:
        parsed = None
    # No lines can be appended to a list in brackets, such as `rejected: []`.
    if not parsed or parsed["rejected"][-len(entries) :] != entries:
        raise MillraceError(
            f"{path} does not end with the list `rejected:`.", "Write it as a list with a `-` an entry."
        )
    replace_file(path, before, f"{text}\n{indented}")
