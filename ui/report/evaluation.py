"""How good the model is: metrics against their bars, details, slices, and the worst examples."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from contracts.evaluation import Confusion, Difference, Insights, Interval, Metric, Slice, WorstExample
from ui import charts
from ui.charts import Bins, Chart, Histogram, Intervals, Line, Lines
from ui.parts import Column, Group, Heading, Parts, Table, Text
from ui.report.source import Source, Surroundings
from ui.texts import Inline, count, line, number, share, shortened, state

MOST_PLOTTED = 40
"""A plot of more slices would be unreadable; the table has all."""
IMAGE = "data:image/"
LONGEST_TEXT = 200
MOST_VALUES = 8


def evaluation_section(source: Source, _surroundings: Surroundings) -> Parts:
    """Metrics against their bars, calibration, confusion, and the curves of a binary model."""
    summary, insights = source.evaluation, source.insights
    if summary is None:
        return []
    measured = [metric for metric in summary.metrics if metric.interval]
    unsure = [metric for metric in summary.metrics if metric.no_interval]
    compared = any(metric.baseline is not None for metric in summary.metrics)
    bars = "every bar was reached" if summary.blessed else "not every bar was reached"
    return [
        Text(f"On {count(summary.rows, 'row')} of the evaluation split{'' if summary.reason else f'; {bars}'}."),
        Text(summary.reason, "" if summary.blessed else "error") if summary.reason else None,
        *(Text(sentence, "dim") for sentence in summary.not_judged),
        Table(
            "Metrics against their bars",
            summary.metrics,
            [
                Column("Metric", lambda metric: metric.name),
                Column("Value", lambda metric: number(metric.value), "number"),
                Column(
                    "Interval",
                    lambda metric: _range(metric.interval) or metric.no_interval or "",
                    when=bool(measured or unsure),
                ),
                Column("Bar", lambda metric: metric.bar),
                Column("Baseline", lambda metric: number(metric.baseline), "number", when=compared),
                Column("Difference", lambda metric: _difference(metric.difference), when=compared),
                Column(
                    "From the best served",
                    lambda metric: _difference(metric.reference_difference),
                    when=any(metric.reference_difference for metric in summary.metrics),
                ),
                Column("Verdict", _verdict),
            ],
        ),
        Text(_method(measured, compared), "dim") if measured else None,
        *(_closer_look(insights) if insights else []),
    ]


def _range(interval: Interval | None) -> str:
    return f"{number(interval.low)}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{number(interval.high)}" if interval else ""


def _difference(difference: Difference | None) -> str:
    return f"{number(difference.value)} ({_range(difference)})" if difference else ""


def _verdict(metric: Metric) -> Inline:
    if metric.undecided:
        return state("cannot tell", "warning")
    if not metric.passed:
        return state("missed", "bad")
    return state("passed") if str(metric.bar) else ""


def _method(measured: list[Metric], compared: bool) -> str:
    intervals = [(metric.name, metric.interval) for metric in measured if metric.interval]
    methods = "; ".join(f"{name} by {interval.method}" for name, interval in intervals if interval.method)
    baseline = " The baseline is the served model, on the same rows." if compared else ""
    return f"Intervals are at {share(intervals[0][1].level)} confidence{methods and f': {methods}'}.{baseline}"


def _closer_look(insights: Insights) -> Parts:
    error, rows = insights.calibration_error, insights.rows_kept
    distance = f"Mean distance of prediction and label, over the bins of the calibration: {number(error)}."
    fewer = f"The rest is computed from {count(rows, 'row')} of the {number(insights.rows)}."
    return [
        Text(distance) if error is not None else None,
        Text(fewer, "dim") if rows < insights.rows else None,
        Group(_charts(insights), "grid"),
        *(_confusion(insights.confusion) if insights.confusion else []),
    ]


def _charts(insights: Insights) -> list[Chart]:
    """Calibration, score distributions, ROC, precision and recall, as far as there are data."""
    drawn: list[Chart] = []
    if insights.calibration:
        points = [(bin.mean_prediction, bin.mean_label) for bin in insights.calibration]
        line = Line("mean label", points)
        drawn.append(Lines("Calibration", [line], x="mean prediction", y="mean label", diagonal=True, markers=True))
    if insights.scores:
        series = [Bins(f"label {scores.label}", scores.bins) for scores in insights.scores]
        drawn.append(Histogram("Predictions by label", series, x="prediction"))
    if insights.roc:
        line = Line("model", list(insights.roc))
        drawn.append(Lines("ROC", [line], x="false positive rate", y="true positive rate", diagonal=True))
    if insights.precision_recall:
        line = Line("model", list(insights.precision_recall))
        drawn.append(Lines("Precision and recall", [line], x="recall", y="precision"))
    return drawn


def _confusion(confusion: Confusion) -> Parts:
    def column(index: int, label: str) -> Column:
        def part(row: tuple[str, list[int]]) -> float:
            return row[1][index] / sum(row[1]) if sum(row[1]) else 0.0

        return Column(label, lambda row: number(row[1][index]), "number", heat=part)

    score = "" if confusion.threshold is None else f", from a score of {confusion.threshold} on"
    return [
        Heading("Confusion"),
        Text(f"Rows are what was true, columns what was predicted{score}; shades are shares of a row."),
        Table(
            "Confusion",
            list(zip(confusion.labels, confusion.counts, strict=True)),
            [
                Column("", lambda row: row[0]),
                *(column(index, label) for index, label in enumerate(confusion.labels)),
                Column("Rows", lambda row: number(sum(row[1])), "number"),
            ],
        ),
    ]


def slices_section(source: Source, _surroundings: Surroundings) -> Parts:
    """Metrics by slice, largest first, with numbers of rows, and the overall value as a reference."""
    summary = source.evaluation
    if summary is None or not summary.slices:
        return []
    plotted = summary.slices[:MOST_PLOTTED]
    measured = any(any(part.intervals.values()) or part.no_intervals for part in summary.slices)

    def columns(metric: str) -> list[Column]:
        def value(row: Slice) -> float | None:
            return row.metrics.get(metric)

        return [
            Column(metric, lambda row: number(value(row)), "number", value),
            Column(
                "Interval",
                lambda row: _range(row.intervals.get(metric)) or row.no_intervals.get(metric, ""),
                when=measured,
            ),
        ]

    return [
        *(
            Intervals(
                title=f"{metric.name} by slice",
                rows=[_plotted(part, metric.name) for part in plotted],
                x=metric.name,
                reference=metric.value,
                reference_label=f"all {summary.rows:,} rows",
                caption=f"the largest {len(plotted)}" if len(plotted) < len(summary.slices) else "",
            )
            for metric in summary.metrics
        ),
        Table(
            "Slices",
            summary.slices,
            [
                Column("Slice", lambda row: row.slice),
                Column("Rows", lambda row: number(row.rows), "number", lambda row: row.rows),
                *(column for metric in summary.metrics for column in columns(metric.name)),
                Column("Bars", _slice_verdict, when=any(part.missed or part.undecided for part in summary.slices)),
            ],
            sortable=True,
        ),
    ]


def _slice_verdict(part: Slice) -> Inline:
    """Which metrics of a slice miss their bars, and which are off them by no more than chance may explain."""
    missed = [line(state("missed", "bad"), f" {name} ") for name in part.missed]
    return line(*missed, *(line(state("cannot tell", "warning"), f" {name} ") for name in part.undecided))


def _plotted(part: Slice, metric: str) -> charts.Interval:
    interval = part.intervals.get(metric)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return charts.Interval(part.slice, part.rows, part.metrics.get(metric), low, high)


def worst_examples_section(source: Source, _surroundings: Surroundings) -> Parts:
    """The rows that the model got most wrong, highest loss first."""
    insights = source.insights
    if insights is None or not insights.worst:
        return []
    rows = count(insights.rows_kept, "row")
    features = dict.fromkeys(name for example in insights.worst for name in example.features)

    def column(title: str, values: Any) -> Column:
        return Column(title, lambda row: _shown(values(row)), lambda row: "number" if _is_number(values(row)) else "")

    return [
        Text(f"The rows with the highest losses among {rows}, with their raw features."),
        Table(
            "Worst examples",
            insights.worst,
            [
                Column("Loss", lambda row: number(row.loss), "number"),
                column("Label", lambda row: [row.label]),
                column("Prediction", _prediction),
                column("Predicted", lambda row: [] if row.predicted is None else [row.predicted]),
                *(column(name, lambda row, name=name: row.features.get(name, [])) for name in features),
            ],
        ),
    ]


def _prediction(example: WorstExample) -> list[Any]:
    return example.prediction if isinstance(example.prediction, list) else [example.prediction]


def _is_number(values: list[Any]) -> bool:
    return len(values) == 1 and isinstance(values[0], int | float) and not isinstance(values[0], bool)


def _shown(values: list[Any]) -> Inline:
    """A feature's value in a row: its image, or its values as text."""
    if len(values) == 1 and isinstance(values[0], dict):
        # Only an embedded image may become a URL that a browser opens.
        image = str(values[0].get("image", ""))
        if image.startswith(IMAGE):
            return Markup('<img src="{}" alt="the image of this row">').format(image)
    texts = [_text(value) for value in values[:MOST_VALUES]]
    more = [f"… {len(values) - MOST_VALUES} more"] if len(values) > MOST_VALUES else []
    return ", ".join(texts + more)


def _text(value: Any) -> str:
    if isinstance(value, dict) and "bytes" in value:
        return f"{value['bytes']:,} bytes" if isinstance(value["bytes"], int) else str(value["bytes"])
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    return shortened(str(value), LONGEST_TEXT)
