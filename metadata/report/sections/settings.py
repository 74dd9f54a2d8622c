"""The run's settings, and which of them differ from the run before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class Setting:
    """A setting.

    Attributes:
        key: Its dotted key.
        value: As JSON; None where only the run before has it.
        before: The value in the run before; None where only this run has it.
        differs: Whether these differ; never where there is no run before.
    """

    key: str
    value: str | None
    before: str | None
    differs: bool


@dataclass(frozen=True)
class Settings:
    """What the nodes were told.

    Attributes:
        run_id: The run's id.
        previous: The id of the run before; empty where there is none.
        settings: By key, those that differ from the run before first.
    """

    run_id: str
    previous: str
    settings: list[Setting]

    @property
    def different(self) -> list[Setting]:
        """Those that differ from the run before."""
        return [setting for setting in self.settings if setting.differs]


def read(source: Source, _surroundings: Surroundings) -> Settings | None:
    """Reads them; None where no node recorded any."""
    before = source.previous.fingerprints if source.previous else {}
    found: dict[str, Setting] = {}
    for node, fingerprint in source.fingerprints.items():
        # A node that the run before did not come to was told nothing there, which is no change.
        earlier = before[node].settings if node in before else None
        found |= {setting.key: setting for setting in _compared(fingerprint.settings, earlier)}
    if not found:
        return None
    previous = source.previous.run.id if source.previous else ""
    return Settings(
        source.run.id, previous, sorted(found.values(), key=lambda setting: (not setting.differs, setting.key))
    )


def _compared(now: dict[str, Any], before: dict[str, Any] | None) -> list[Setting]:
    if before is None:
        return [Setting(key, _text(value), None, differs=False) for key, value in now.items()]
    keys = [*now, *(key for key in before if key not in now)]
    return [
        Setting(
            key,
            _text(now[key]) if key in now else None,
            _text(before[key]) if key in before else None,
            differs=key not in now or key not in before or now[key] != before[key],
        )
        for key in keys
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
