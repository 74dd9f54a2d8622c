"""Images that nodes have drawn for the report: those of their Plot artifacts."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from contracts.plots import PLOT_TYPE, Plot, read_plots
from ui.parts import Part, Parts, Text
from ui.report.source import Source, Surroundings


def plots_section(source: Source, _surroundings: Surroundings) -> Parts:
    """The plots in the order of the nodes, each under its title."""
    return [_figure(node, plot) for node, plot in _plots(source)]


def _plots(source: Source) -> Iterator[tuple[str, Plot]]:
    for node, outputs in source.outputs.items():
        for artifacts in outputs.values():
            for artifact in artifacts:
                if artifact.type == PLOT_TYPE:
                    yield from ((node, plot) for plot in read_plots(artifact.path))


def _figure(node: str, plot: Plot) -> Part:
    caption = f"{plot.title} ({node})"
    if plot.note:
        return Text(f"{caption}: {plot.note}", "warning")
    # As an image, not inline SVG: a browser runs and fetches nothing in it.
    return Markup('<figure class="drawn"><figcaption>{}</figcaption><img src="{}" alt="{}"></figure>').format(
        caption, plot.data_uri, caption
    )
