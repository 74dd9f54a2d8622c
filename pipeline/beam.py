"""Beam's runner and options for an environment."""

from __future__ import annotations

from pipeline.environment import BeamSettings

# On two cores `multi_processing`, which TFX's examples ship, is slower than one process up to at least 300,000 rows.
_DIRECT = ["--runner=DirectRunner", "--direct_running_mode=in_memory"]


def options(settings: BeamSettings) -> list[str]:
    """The pipeline options that every node's Beam work runs with; the environment's own options come last and win."""
    return [*_DIRECT, *settings.options]
