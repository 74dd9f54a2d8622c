"""What the tests of pushing share."""

from __future__ import annotations

from pathlib import Path

from components.pusher import versions
from components.pusher.manifest import Origin

NOW = 1_700_000_000
ORIGIN = Origin(model_id=7, model_uri="/artifacts/Model/7", run_id="small-1")


def numbers(base: Path) -> list[int]:
    """The versions in a serving folder, oldest first."""
    return [version.number for version in versions.find_versions(base)]
