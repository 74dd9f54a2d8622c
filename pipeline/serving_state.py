"""What became of a pushed version: it is served, under its own number or another, or something else is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.pusher import versions
from components.pusher.versions import Version


@dataclass(frozen=True)
class State:
    """What became of a push.

    Attributes:
        served: The folder that serves the pushed model; None where no version does.
        why_not: Why none does, as a sentence; None where one does or nothing was pushed.
        restorable: The version that holds the model and could be served again, where none serves it.
    """

    served: Path | None = None
    why_not: str | None = None
    restorable: int | None = None


def of(properties: dict[str, Any]) -> State:
    """The state of a push now.

    Args:
        properties: Those of its PushedModel; see components/pusher/record.py.

    Raises:
        PushError: The serving folder cannot be read.
    """
    if not properties.get("pushed_destination"):
        withdrawn = properties.get("withdrawn_version")
        if withdrawn is None:
            return State()
        return State(None, f"Not pushed: {properties['not_pushed_reason']}.", withdrawn)
    path = Path(properties["pushed_destination"])
    existing = {version.path: version for version in versions.find(path.parent)}
    served = list(existing.values())[-1] if existing else None
    if served is None or served.path == path:
        return State(path)
    pushed = existing.get(path)
    if pushed and pushed.content == served.content:
        return State(served.path)
    return State(None, _other(int(path.name), served), int(path.name) if pushed else None)


def _other(pushed: int, served: Version) -> str:
    what = f"Not served: version {served.number} is"
    rollback = served.manifest.rollback if served.manifest else None
    if rollback and served.manifest:
        when = served.manifest.pushed.astimezone().strftime("%Y-%m-%d %H:%M")
        return (
            f"{what}, the content of version {rollback.restored_version}, since the rollback of {when}; "
            f"this run's model is version {pushed}."
        )
    return f"{what}, which was pushed later; this run's model is version {pushed}."
