"""The artifact type for what a recipe's own node draws for the report."""

from __future__ import annotations

from tfx.types import artifact

from contracts.plots import PLOT_TYPE


class Plot(artifact.Artifact):
    """A folder with `*.svg` and `*.png` files, which a run's report and the dashboard show under their names."""

    TYPE_NAME = PLOT_TYPE
