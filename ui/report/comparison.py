"""Two runs as one page: what differs between them, and their data drawn over each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from contracts import atomic
from contracts.content import ContentError
from contracts.evaluation import Metric
from metadata import differences
from metadata.differences import Change, Differences
from metadata.queries import Queries
from metadata.records import RunRecord
from ui import rendering
from ui.contents import statistics
from ui.contents.statistics import SplitStatistics
from ui.links import Links
from ui.parts import Column, Parts, Section, Table, Text, Verbatim
from ui.report import drift, features, training
from ui.report.source import Source
from ui.texts import NONE, Inline, line, link, local_time, number, shortened

LONGEST_VALUE = 200
DIGITS = 6


def compare(store: Queries, before: RunRecord, after: RunRecord, links: Links) -> Parts:
    """The parts of the page that compares two runs."""
    changes = differences.between(store, before, after)
    sources = Source.from_run(store, before), Source.from_run(store, after)
    trainings = training.trainings_compared(*sources)
    return [
        Text(line("From run ", _run(before, links), " to run ", _run(after, links), ".")),
        *_changes(changes, before.id, after.id),
        _metrics(*sources),
        Section("training", "Training", trainings) if trainings else None,
        Section("schema", "Schema", [Verbatim("\n".join(changes.schema), look="diff")]) if changes.schema else None,
        Section("data", "Data", _data(*sources, links)),
    ]


def render(store: Queries, before: RunRecord, after: RunRecord, *, inline: bool, links: Links) -> str:
    """The page that compares two runs, as HTML.

    Args:
        store: The metadata store.
        before: The first run.
        after: The second run.
        inline: Whether to embed style and script, as a file that stands alone needs.
        links: Links to the things that it names.
    """
    return rendering.render(
        "page.html",
        inline=inline,
        title=f"{before.id} and {after.id}",
        header="What differs",
        heading="",
        shown=compare(store, before, after, links),
        footer="From the metadata store.",
    )


def write(store: Queries, before: RunRecord, after: RunRecord, path: Path) -> None:
    """Writes the page atomically, as one file that needs no network and no server.

    Raises:
        OSError: The file cannot be written.
    """
    page = render(store, before, after, inline=True, links=Links())
    atomic.write_text(path, page)


def _run(run: RunRecord, links: Links) -> Inline:
    return line(link(run.id, links.run(run.id)), f" ({local_time(run.started)})")


def _changes(diff: Differences, before: str, after: str) -> Parts:
    """A section for each of settings, code, packages and raw data that has differences."""

    def table(heading: str, changes: list[Change]) -> Table:
        columns = [
            Column(heading, lambda change: change.name),
            Column(before, lambda change: _shown(change.before)),
            Column(after, lambda change: _shown(change.after)),
        ]
        return Table(heading, changes, columns)

    tables = [
        ("Settings", diff.settings),
        ("Source files", diff.code),
        ("Packages", diff.packages),
        ("Raw data", diff.data),
    ]
    shown = [table(heading, changes) for heading, changes in tables if changes]
    if not shown and not diff.metrics and not diff.schema:
        return [Text("Settings, code, packages, data, schema and metrics are the same.")]
    return [Section(f"changes-{place}", each.label, [each]) for place, each in enumerate(shown, start=1)]


def _shown(value: Any) -> str:
    """A changed value as text."""
    if value is None:
        return NONE
    return shortened(f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value), LONGEST_VALUE)


def _metrics(before: Source, after: Source) -> Section | None:
    """The metrics of both runs with their intervals; None if neither was evaluated."""
    old, new = _by_name(before), _by_name(after)
    names = [*new, *(name for name in old if name not in new)]

    def columns(run: str, metrics: dict[str, Metric]) -> list[Column]:
        return [
            Column(run, lambda name: number(metrics[name].value if name in metrics else None), "number"),
            Column("Interval", lambda name: _interval(metrics.get(name))),
        ]

    def change(name: str) -> str:
        values = [metrics[name].value if name in metrics else None for metrics in (old, new)]
        return NONE if values[0] is None or values[1] is None else f"{values[1] - values[0]:+.4f}"

    table = Table(
        "Metrics",
        names,
        [
            Column("Metric", str),
            *columns(before.run.id, old),
            *columns(after.run.id, new),
            Column("Change", change, "number"),
        ],
    )
    return Section("metrics", "Metrics", [table]) if names else None


def _interval(metric: Metric | None) -> str:
    interval = metric and metric.interval
    return f"{number(interval.low)} to {number(interval.high)}" if interval else ""


def _by_name(source: Source) -> dict[str, Metric]:
    """The metrics of a run by name; empty if its evaluation is gone."""
    try:
        summary = source.evaluation
    except ContentError:
        return {}
    return {} if summary is None else {metric.name: metric for metric in summary.metrics}


def _data(before: Source, after: Source, links: Links) -> Parts:
    """The train splits drawn over each other, the features that are farthest apart first."""
    try:
        old, new = _train(before), _train(after)
        if old is None or new is None:
            return [Text("The two runs do not both have statistics of a train split.")]
        bars = drift.schema_of(after)
    except ContentError as error:
        return [Text(f"{error}.")]
    names = (before.run.id, after.run.id)
    cards = features.cards([replace(old, name=names[0]), replace(new, name=names[1])])
    if drift.same_examples(before, after):
        same = Text("Both runs took the very same examples: nothing can have drifted.")
        return [same, *features.features_shown(names, cards)]
    measured = drift.compare_splits(old, new, bars, names[0])
    places = {row.feature: place for place, row in reversed(list(enumerate(measured.rows)))}
    cards.sort(key=lambda card: places[card.name])
    return [
        *drift.distances_shown(measured, links),
        drift.formulas([measured]),
        *features.features_shown(names, cards),
    ]


def _train(source: Source) -> SplitStatistics | None:
    artifact = source.artifact(*drift.STATISTICS)
    return None if artifact is None else statistics.read_statistics(artifact).get(drift.TRAIN)
