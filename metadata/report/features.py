"""Features as cards: what is known of each in several sets of rows, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metadata.contents.anomalies import Finding
from metadata.contents.statistics import FeatureStatistics, SplitStatistics
from metadata.pages.charts import Chart
from metadata.report import distributions

MOST_OPEN = 40
"""With more features than these their cards are closed."""


@dataclass(frozen=True)
class Card:
    """A feature.

    Attributes:
        id: Its anchor.
        name: The feature.
        kind: `int`, `float`, `text`, `bytes` or `struct`; all of them where the sets differ.
        sides: Its statistics in each set of rows, in their order; None where one does not have it.
        charts: How its values are distributed in them.
        findings: What is wrong with it.
    """

    id: str
    name: str
    kind: str
    sides: list[FeatureStatistics | None]
    charts: list[Chart]
    findings: list[Finding]

    @property
    def numbers(self) -> bool:
        """Whether it has numbers in any set of rows."""
        return any(side is not None and side.numbers is not None for side in self.sides)

    @property
    def texts(self) -> bool:
        """Whether it has texts in any set of rows."""
        return any(side is not None and side.texts is not None for side in self.sides)


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
    # What has no values at all says nothing of its kind.
    kinds = {side.kind for side in sides if side is not None and side.values} or {
        side.kind for side in sides if side is not None
    }
    named = {each.name: side for each, side in zip(sets, sides, strict=True) if side is not None}
    return Card(
        id=f"feature-{index}",
        name=name,
        kind=" and ".join(sorted(kinds)),
        sides=sides,
        charts=distributions.charts(name, named),
        findings=[finding for finding in findings if finding.feature == name],
    )
