"""Two runs as one page: what differs between them, and their data over each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metadata import differences
from metadata.contents import statistics
from metadata.contents.evaluation import Metric
from metadata.contents.reading import ContentError
from metadata.contents.statistics import SplitStatistics
from metadata.differences import Change, Differences
from metadata.pages import rendering
from metadata.pages.links import Links
from metadata.pages.rendering import NONE
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.report import curves, features
from metadata.report.curves import Curves
from metadata.report.features import Card
from metadata.report.sections import drift
from metadata.report.source import Source

TEMPLATE = "run/difference.html"
LONGEST_VALUE = 200
DIGITS = 6


@dataclass(frozen=True)
class Data:
    """The train splits of two runs over each other.

    Attributes:
        names: What the two are called in charts and tables.
        rows: How many each has.
        drift: How far apart they are, with the bars of the second run's schema; None where they are the same examples.
        cards: The features, the farthest apart first.
    """

    names: tuple[str, str]
    rows: tuple[int, int]
    drift: drift.Comparison | None
    cards: list[Card]

    @property
    def opened(self) -> bool:
        """Whether the cards are open at first."""
        return len(self.cards) <= features.MOST_OPEN


@dataclass(frozen=True)
class MetricRow:
    """A metric of two runs; None where a run does not have it.

    Attributes:
        name: The metric.
        before: In the first run.
        after: In the second run.
    """

    name: str
    before: Metric | None
    after: Metric | None

    @property
    def change(self) -> float | None:
        """The second value less the first; None where one of them is not known."""
        values = [None if metric is None else metric.value for metric in (self.before, self.after)]
        return None if values[0] is None or values[1] is None else values[1] - values[0]


@dataclass(frozen=True)
class Comparison:
    """Two runs.

    Attributes:
        before: The first run.
        after: The second run.
        differences: What differs.
        tables: Heading and changes of settings, code, packages and raw data; those that have any.
        metrics: What the Evaluator found in each, with intervals where it computed them.
        curves: Their trainings over each other; None where one of them trained no model.
        data: Their train splits; None where one of them has no statistics.
        why_not: Why not, as a sentence; else empty.
    """

    before: RunRecord
    after: RunRecord
    differences: Differences
    tables: list[tuple[str, list[Change]]]
    metrics: list[MetricRow]
    curves: Curves | None
    data: Data | None
    why_not: str


def compare(store: Queries, before: RunRecord, after: RunRecord) -> Comparison:
    """Compares two runs."""
    found = differences.between(store, before, after)
    tables = [
        ("Settings", found.settings),
        ("Source files", found.code),
        ("Packages", found.packages),
        ("Raw data", found.data),
    ]
    sources = Source.of(store, before), Source.of(store, after)
    try:
        data, why_not = _data(*sources), ""
    except ContentError as error:
        data, why_not = None, f"{error}."
    shown = [(title, changes) for title, changes in tables if changes]
    if data is None:
        why_not = why_not or "The two runs do not both have statistics of a train split."
    return Comparison(before, after, found, shown, _metrics(*sources), curves.read(*sources), data, why_not)


def render(store: Queries, before: RunRecord, after: RunRecord, *, inline: bool, links: Links) -> str:
    """The page of two runs, as HTML.

    Args:
        store: The metadata store.
        before: The first run.
        after: The second run.
        inline: Whether style and script are in the page itself, as a file that stands alone needs it.
        links: Where the things it names can be looked at.
    """
    content = compare(store, before, after)
    return rendering.render(TEMPLATE, inline=inline, links=links, comparison=content, shown=shown)


def write(store: Queries, before: RunRecord, after: RunRecord, path: Path) -> None:
    """Writes the page as one file that needs no network and no server; whole or not at all.

    Raises:
        OSError: It cannot be written there.
    """
    page = render(store, before, after, inline=True, links=Links())
    rendering.write(page, path)


def shown(value: Any) -> str:
    """A value of a change as text."""
    if value is None:
        return NONE
    text = f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _metrics(before: Source, after: Source) -> list[MetricRow]:
    old, new = _by_name(before), _by_name(after)
    return [
        MetricRow(name, old.get(name), new.get(name)) for name in [*new, *(name for name in old if name not in new)]
    ]


def _by_name(source: Source) -> dict[str, Metric]:
    """The metrics of a run by name; none where its evaluation is gone, as for the rest of what differs."""
    try:
        found = source.evaluation
    except ContentError:
        return {}
    return {} if found is None else {metric.name: metric for metric in found.metrics}


def _data(before: Source, after: Source) -> Data | None:
    old, new = _train(before), _train(after)
    if old is None or new is None:
        return None
    names = (before.run.id, after.run.id)
    cards = features.cards([replace(old, name=names[0]), replace(new, name=names[1])])
    rows = (old.rows, new.rows)
    if drift.same_examples(before, after):
        return Data(names, rows, None, cards)
    measured = drift.between(old, new, drift.schema_of(after), before.run.id)
    places: dict[str, int] = {}
    for place, row in enumerate(measured.rows):
        places.setdefault(row.feature, place)
    return Data(names, rows, measured, sorted(cards, key=lambda card: places[card.name]))


def _train(source: Source) -> SplitStatistics | None:
    made = source.artifact(*drift.STATISTICS)
    return None if made is None else statistics.read(made).get(drift.TRAIN)
