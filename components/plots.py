"""The artifact type of what a recipe's own node draws for the report."""

from __future__ import annotations

from tfx.types import artifact

from contracts.plots import PLOT_TYPE


class Plot(artifact.Artifact):
    """A folder with `*.svg` and `*.png` files, which the report of a run and the dashboard show by their names."""

    TYPE_NAME = PLOT_TYPE
