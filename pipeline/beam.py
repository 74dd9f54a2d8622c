"""Beam's runner and options for an environment."""

from __future__ import annotations

from pipeline.environment import BeamSettings
from pipeline.recipe import PROJECT_ROOT


def options(settings: BeamSettings) -> list[str]:
    """The pipeline options that every node's Beam work runs with.

    None at all means Beam's own default: the DirectRunner in memory, which on two cores beats `multi_processing` up to
    at least 300,000 rows. Given any option, TFX packs itself into a source distribution for remote workers, once a
    node; naming our own setup.py, which is what remote workers need, spares that.
    """
    return [*settings.options, f"--setup_file={PROJECT_ROOT / 'setup.py'}"] if settings.options else []
