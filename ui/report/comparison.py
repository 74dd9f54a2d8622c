"""Two runs as one page: what differs between them, and their data over each other."""

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
    """What the page of two runs shows."""
    found = differences.between(store, before, after)
    sources = Source.of(store, before), Source.of(store, after)
    trainings = training.trainings_compared(*sources)
    return [
        Text(line("From run ", _run(before, links), " to run ", _run(after, links), ".")),
        *_changes(found, before.id, after.id),
        _metrics(*sources),
        Section("training", "Training", trainings) if trainings else None,
        Section("schema", "Schema", [Verbatim("\n".join(found.schema), look="diff")]) if found.schema else None,
        Section("data", "Data", _data(*sources, links)),
    ]


def render(store: Queries, before: RunRecord, after: RunRecord, *, inline: bool, links: Links) -> str:
    """The page of two runs, as HTML.

    Args:
        store: The metadata store.
        before: The first run.
        after: The second run.
        inline: Whether style and script are in the page itself, as a file that stands alone needs it.
        links: Where the things it names can be looked at.
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
    """Writes the page as one file that needs no network and no server; whole or not at all.

    Raises:
        OSError: It cannot be written there.
    """
    page = render(store, before, after, inline=True, links=Links())
    atomic.write_text(path, page)


def _run(run: RunRecord, links: Links) -> Inline:
    return line(link(run.id, links.run(run.id)), f" ({local_time(run.started)})")


def _changes(found: Differences, before: str, after: str) -> Parts:
    """A section for each of settings, code, packages and raw data of which any differ."""

    def table(heading: str, changes: list[Change]) -> Table:
        columns = [
            Column(heading, lambda change: change.name),
            Column(before, lambda change: _shown(change.before)),
            Column(after, lambda change: _shown(change.after)),
        ]
        return Table(heading, changes, columns)

    tables = [
        ("Settings", found.settings),
        ("Source files", found.code),
        ("Packages", found.packages),
        ("Raw data", found.data),
    ]
    shown = [table(heading, changes) for heading, changes in tables if changes]
    if not shown and not found.metrics and not found.schema:
        return [Text("Settings, code, packages, data, schema and metrics are the same.")]
    return [Section(f"changes-{place}", each.label, [each]) for place, each in enumerate(shown, start=1)]


def _shown(value: Any) -> str:
    """A value of a change as text."""
    if value is None:
        return NONE
    return shortened(f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value), LONGEST_VALUE)


def _metrics(before: Source, after: Source) -> Section | None:
    """The metrics of both with their intervals; None where neither was evaluated."""
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
    found = metric and metric.interval
    return f"{number(found.low)} to {number(found.high)}" if found else ""


def _by_name(source: Source) -> dict[str, Metric]:
    """The metrics of a run by name; none where its evaluation is gone, as for the rest of what differs."""
    try:
        found = source.evaluation
    except ContentError:
        return {}
    return {} if found is None else {metric.name: metric for metric in found.metrics}


def _data(before: Source, after: Source, links: Links) -> Parts:
    """The train splits over each other, the features that are farthest apart first."""
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
    made = source.artifact(*drift.STATISTICS)
    return None if made is None else statistics.read_statistics(made).get(drift.TRAIN)
