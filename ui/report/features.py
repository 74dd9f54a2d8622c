"""Features as cards: the statistics of each in several sets of rows, side by side, with charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from contracts.data_verdict import QuotedRow
from ui.charts import Bars, Bins, Chart, Counts, Histogram, Line, Lines
from ui.contents.data_faults import Finding
from ui.contents.statistics import FeatureStatistics, Numbers, SplitStatistics, Texts, finite_bins
from ui.parts import Column, Details, Group, Heading, Parts, Table, Text
from ui.texts import NONE, Inline, bold, count, dim, line, link, marked, number, share, shortened, state

MOST_LABELS = 10
LONGEST_LABEL = 80
# With more than this share of the values in one of ten equally wide bins, the histogram hides the details.
CROWDED = 0.8
MOST_OPEN = 40
"""With more features than this, their cards are closed."""
FEW = 20
"""A table with more features than this has a box to filter them."""

DECILES = 11
"""The smallest value, nine in between, and the largest."""

Side = FeatureStatistics | None


def distribution_charts(name: str, sides: Mapping[str, FeatureStatistics]) -> list[Chart]:
    """The charts of a feature, depending on its kind; empty if there is nothing to see.

    Args:
        name: The feature.
        sides: Its statistics by the name of the set of rows, such as a split.
    """
    numbers = {side: statistics.numbers for side, statistics in sides.items() if statistics.numbers is not None}
    texts = {side: statistics.texts for side, statistics in sides.items() if statistics.texts is not None}
    return [*_number_charts(name, numbers), *_text_charts(name, texts)]


def _number_charts(name: str, sides: Mapping[str, Numbers]) -> list[Chart]:
    # A constant needs no chart: the smallest and the largest value say it all.
    if not sides or len({value for numbers in sides.values() for value in (numbers.min, numbers.max)}) == 1:
        return []
    series = [Bins(side, _with_width(numbers)) for side, numbers in sides.items() if _with_width(numbers)]
    charts: list[Chart] = [Histogram(name, series, x=name)] if series else []
    if any(_crowded(numbers) for numbers in sides.values()):
        lines = [Line(side, _quantiles(numbers)) for side, numbers in sides.items()]
        if any(line.points for line in lines):
            charts.append(Lines(f"{name}: quantiles up to 90 %", lines, x="share of the values", y=name, markers=True))
    return charts


def _with_width(numbers: Numbers) -> list[tuple[float, float, float]]:
    return [(low, high, count) for low, high, count in finite_bins(numbers.bins) if low < high]


def _crowded(numbers: Numbers) -> bool:
    counts = [count for _, _, count in numbers.bins]
    return bool(counts) and max(counts) > CROWDED * sum(counts)


def _quantiles(numbers: Numbers) -> list[tuple[float, float | int | None]]:
    """The deciles without the last: outliers are why the histogram hides the rest."""
    points = [(index / len(numbers.quantiles), value) for index, value in enumerate(numbers.deciles[:-1])]
    return [(share, value) for share, value in points if abs(value) != float("inf")]


def _text_charts(name: str, sides: Mapping[str, Texts]) -> list[Chart]:
    charts: list[Chart] = []
    labels: dict[str, None] = {}
    for texts in sides.values():
        labels |= dict.fromkeys(label for label, _ in texts.top[:MOST_LABELS])
    if labels:
        charts.append(Bars(name, [Counts(side, _counts(texts, labels), texts.total) for side, texts in sides.items()]))
    lengths = [Bins(side, list(texts.lengths)) for side, texts in sides.items() if texts.lengths]
    # For texts of the same or nearly the same length, the mean length says it all.
    if any(len(each.bins) > 1 for each in lengths):
        charts.append(Histogram(f"{name}: lengths", lengths, x="bytes"))
    return charts


def _counts(texts: Texts, labels: Mapping[str, None]) -> list[tuple[str, float]]:
    return [(_label(label), texts.counts.get(label, 0.0)) for label in labels]


def _label(text: str) -> str:
    """A text as a label; blank texts are quoted to be visible."""
    return shortened(text, LONGEST_LABEL) if text.strip() else repr(text)


@dataclass(frozen=True)
class Card:
    """A feature.

    Attributes:
        id: Its anchor.
        name: The feature.
        kind: `int`, `float`, `text`, `bytes` or `struct`; several if the sets differ.
        sides: Its statistics in each set of rows, in order; None for a set without it.
        charts: Charts of its distribution.
        findings: Its anomalies.
    """

    id: str
    name: str
    kind: str
    sides: list[Side]
    charts: list[Chart]
    findings: list[Finding]


def cards(sets: Sequence[SplitStatistics], findings: Sequence[Finding] = ()) -> list[Card]:
    """A card for each feature that any set of rows has.

    Args:
        sets: Such as the splits of a run; their names are the names of the series in charts.
        findings: Anomalies.
    """
    names = {name: None for each in sets for name in each.features}
    return [_card(index, name, sets, findings) for index, name in enumerate(names)]


def _card(index: int, name: str, sets: Sequence[SplitStatistics], findings: Sequence[Finding]) -> Card:
    sides = [each.features.get(name) for each in sets]
    # A feature without values says nothing about its kind.
    kinds = {side.kind for side in sides if side is not None and side.values} or {
        side.kind for side in sides if side is not None
    }
    named = {each.name: side for each, side in zip(sets, sides, strict=True) if side is not None}
    return Card(
        id=f"feature-{index}",
        name=name,
        kind=" and ".join(sorted(kinds)),
        sides=sides,
        charts=distribution_charts(name, named),
        findings=[finding for finding in findings if finding.feature == name],
    )


def features_shown(sets: Sequence[str], cards: Sequence[Card], *, closed: bool = False) -> Parts:
    """A table of all features, and a card for each.

    Args:
        sets: The names of the sets of rows.
        cards: The features.
        closed: Whether only the cards of features with anomalies are open at first, as they are if there are many.
    """
    opened = not closed and len(cards) <= MOST_OPEN
    return [Heading("All features"), _overview(sets, cards), *(_card_shown(sets, card, opened) for card in cards)]


def _overview(sets: Sequence[str], cards: Sequence[Card]) -> Table:
    def missing(side: Side) -> float | None:
        return side.missing_share if side else None

    def mean(side: Side) -> float | None:
        return side.numbers.mean if side and side.numbers else None

    def distinct(side: Side) -> float | None:
        return side.texts.unique if side and side.texts else None

    def columns(
        title: str, value: Callable[[Side], float | None], shown: Callable[[float | None], str]
    ) -> list[Column]:
        return [column(f"{title} in {name}", place, value, shown) for place, name in enumerate(sets)]

    def column(
        title: str, place: int, value: Callable[[Side], float | None], shown: Callable[[float | None], str]
    ) -> Column:
        return Column(
            title, lambda card: shown(value(card.sides[place])), "number", lambda card: value(card.sides[place])
        )

    def anomalies(card: Card) -> Inline:
        return state(str(len(card.findings)), "bad") if card.findings else "0"

    return Table(
        "All features",
        cards,
        [
            Column("Feature", lambda card: link(card.name, f"#{card.id}")),
            Column("Type", lambda card: card.kind),
            *columns("Missing", missing, lambda value: "not there" if value is None else share(value)),
            *columns("Mean", mean, number),
            *columns("Distinct", distinct, number),
            Column("Anomalies", anomalies, "number", lambda card: len(card.findings)),
        ],
        sortable=True,
        filter="features",
    )


def _card_shown(sets: Sequence[str], card: Card, opened: bool) -> Details:
    anomalies = state(count(len(card.findings), "anomaly", "anomalies"), "bad") if card.findings else ""
    findings = [finding_shown(finding) for finding in card.findings]
    return Details(
        line(bold(card.name), " ", dim(card.kind), " ", anomalies),
        [Group([*findings, Group([_statistics(sets, card), *card.charts], "grid")], id=card.id)],
        open=opened or bool(findings),
        look="feature",
    )


def _statistics(sets: Sequence[str], card: Card) -> Table:
    """The statistics of a feature, with a row per figure and a column per set of rows."""
    whole = card.kind == "int"

    def row(label: str, of: Callable[[FeatureStatistics], Inline | None], none: str = NONE) -> tuple[str, list[Inline]]:
        values = [None if side is None else of(side) for side in card.sides]
        return label, [none if value is None else value for value in values]

    def numeric(label: str, of: Callable[[Numbers], float | None], whole: bool = False) -> tuple[str, list[Inline]]:
        def shown(side: FeatureStatistics) -> str | None:
            value = of(side.numbers) if side.numbers else None
            return None if value is None else number(int(value) if whole else value)

        return row(label, shown)

    def textual(label: str, of: Callable[[Texts], float], digits: int = 4) -> tuple[str, list[Inline]]:
        return row(label, lambda side: number(of(side.texts), digits) if side.texts else None)

    def decile(tenths: int) -> Callable[[Numbers], float | None]:
        return lambda numbers: numbers.deciles[tenths] if len(numbers.deciles) == DECILES else None

    numbers = [side.numbers for side in card.sides if side and side.numbers]
    rows = [
        row("Missing", lambda side: line(f"{side.missing:,} ", dim(share(side.missing_share))), "not in this split")
    ]
    rows.append(row("Values a row", _values_a_row))
    if numbers:
        rows += [
            numeric("Mean", lambda numbers: numbers.mean),
            numeric("Standard deviation", lambda numbers: numbers.std_dev),
            numeric("Zeros", lambda numbers: numbers.zeros),
            numeric("Smallest", lambda numbers: numbers.min, whole),
            *(numeric(f"{tenths}0 % {'(median)' * (tenths == 5)}", decile(tenths), whole) for tenths in range(1, 10)),
            numeric("Largest", lambda numbers: numbers.max, whole),
        ]
    if any(each.not_numbers for each in numbers):
        rows.append(numeric("Not a number", lambda numbers: numbers.not_numbers))
    if any(side and side.texts for side in card.sides):
        rows += [
            textual("Distinct", lambda texts: texts.unique),
            textual("Mean length in bytes", lambda texts: texts.mean_length, 1),
            textual("Bytes that are no text", lambda texts: texts.not_text),
        ]

    def values(place: int, name: str) -> Column:
        return Column(name, lambda row: row[1][place], "number")

    columns = [Column("", lambda row: row[0]), *(values(*named) for named in enumerate(sets))]
    return Table(f"Statistics of {card.name}", rows, columns)


def _values_a_row(side: FeatureStatistics) -> str | None:
    if not side.values:
        return None
    return str(side.fewest) if side.fewest == side.most else f"{side.fewest} to {side.most}"


def finding_shown(finding: Finding) -> Group:
    """An anomaly with values and rows that show it."""
    feature = finding.feature
    others = [name for name in finding.rows[0].values if name != feature] if finding.rows else []
    return Group(
        [
            Text(line(bold(finding.summary), " ", dim(f"in {finding.split}"))),
            Text(finding.description) if finding.description != finding.summary else None,
            Text(f"For example {', '.join(finding.samples)}.") if finding.samples else None,
            Table(
                f"Rows of {finding.split} in which {feature} is not as its schema says",
                finding.rows,
                [
                    Column("Row", lambda row: f"{row.row:,}", "number"),
                    _quoted_column(feature, marked),
                    *map(_quoted_column, others),
                ],
            )
            if finding.rows
            else None,
        ],
        "error",
    )


def _quoted_column(name: str, shown: Callable[[Inline], Inline] = lambda text: text) -> Column:
    def cell(row: QuotedRow) -> Inline:
        value = row.values.get(name)
        return shown(dim("missing") if value is None else value)

    return Column(name, cell)
