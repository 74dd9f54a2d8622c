"""Where the model is good and where it is not: metrics slice by slice, with how many rows each rests on."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents.evaluation import Interval, Slice
from metadata.pages import charts
from metadata.pages.charts import Intervals
from metadata.report.source import Source, Surroundings

MOST_PLOTTED = 40
"""A plot of more slices could not be read; the table has all."""


@dataclass(frozen=True)
class Row:
    """A slice.

    Attributes:
        name: What its rows have in common.
        rows: How many rows it has.
        cells: For each metric the value and its interval.
    """

    name: str
    rows: int
    cells: list[tuple[float | None, Interval | None]]


@dataclass(frozen=True)
class Slices:
    """The slices of the evaluation split.

    Attributes:
        metrics: The metrics' names.
        rows: Largest first.
        charts: One a metric, with the whole's value as reference.
        plotted: How many of the slices are in the charts.
        measured: Whether there are intervals.
    """

    metrics: list[str]
    rows: list[Row]
    charts: list[Intervals]
    plotted: int
    measured: bool


def read(source: Source, _surroundings: Surroundings) -> Slices | None:
    """Reads them; None where nothing was evaluated, or not by slices."""
    summary = source.evaluation
    if summary is None or not summary.slices:
        return None
    plotted = summary.slices[:MOST_PLOTTED]
    return Slices(
        metrics=[metric.name for metric in summary.metrics],
        rows=[
            Row(found.slice, found.rows, [_cell(found, metric.name) for metric in summary.metrics])
            for found in summary.slices
        ],
        charts=[
            Intervals(
                title=f"{metric.name} by slice",
                rows=[_line(found, metric.name) for found in plotted],
                x=metric.name,
                reference=metric.value,
                reference_label=f"all {summary.rows:,} rows",
            )
            for metric in summary.metrics
        ],
        plotted=len(plotted),
        measured=any(interval for found in summary.slices for interval in found.intervals.values()),
    )


def _cell(found: Slice, metric: str) -> tuple[float | None, Interval | None]:
    return found.metrics.get(metric), found.intervals.get(metric)


def _line(found: Slice, metric: str) -> charts.Interval:
    value, interval = _cell(found, metric)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return charts.Interval(found.slice, found.rows, value, low, high)
