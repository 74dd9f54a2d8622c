"""The data: what was set aside, anomalies, and the statistics of all splits side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metadata.contents import anomalies, rejected, statistics
from metadata.contents.anomalies import DATA_SET, Finding
from metadata.contents.places import VERDICT_FILE
from metadata.contents.rejected import Rejected
from metadata.contents.statistics import FeatureStatistics, SplitStatistics
from metadata.pages.charts import Chart
from metadata.report import distributions
from metadata.report.source import Source, Surroundings

MOST_OPEN = 40
"""With more features than these their cards are closed."""


@dataclass(frozen=True)
class Card:
    """A feature.

    Attributes:
        id: Its anchor.
        name: The feature.
        kind: `int`, `float`, `text`, `bytes` or `struct`; both where the splits differ.
        sides: Its statistics in each split, in the order of the splits; None where the split does not have it.
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
        """Whether it has numbers in any split."""
        return any(side is not None and side.numbers is not None for side in self.sides)

    @property
    def texts(self) -> bool:
        """Whether it has texts in any split."""
        return any(side is not None and side.texts is not None for side in self.sides)


@dataclass(frozen=True)
class Statistics:
    """The data of a run.

    Attributes:
        splits: Name and rows of each split.
        cards: The features, in the order of the statistics.
        data_set: What is wrong with the data set as a whole.
        findings: How many anomalies there are.
        others: What is wrong with features that have no statistics, such as columns that are missing.
        checked: Whether the data were held to a schema.
        opened: Whether the cards are open at first.
        rejected: Rows that were set aside, or None.
    """

    splits: list[tuple[str, int]]
    cards: list[Card]
    data_set: list[Finding]
    findings: int
    others: list[Finding]
    checked: bool
    opened: bool
    rejected: Rejected | None


def read(source: Source, surroundings: Surroundings) -> Statistics | None:
    """Reads it; None where the run has no data yet.

    Raises:
        ContentError: A file is missing or broken.
    """
    made = source.artifact("StatisticsGen", "statistics")
    set_aside = source.artifact("ExampleGen", "rejected_rows")
    out = None if set_aside is None else rejected.read(set_aside)
    if made is None and out is None:
        return None
    splits = list(statistics.read(made).values()) if made is not None else []
    found = _findings(source, surroundings.log_folder)
    names = {name: None for split in splits for name in split.features}
    return Statistics(
        splits=[(split.name, split.rows) for split in splits],
        cards=[_card(index, name, splits, found or []) for index, name in enumerate(names)],
        data_set=[finding for finding in found or [] if finding.feature == DATA_SET],
        findings=len(found or []),
        others=[finding for finding in found or [] if finding.feature not in {DATA_SET, *names}],
        checked=found is not None,
        opened=len(names) <= MOST_OPEN,
        rejected=out,
    )


def _findings(source: Source, log_folder: Path | None) -> list[Finding] | None:
    """The anomalies; None where the data were not held to a schema."""
    made = source.artifact("ExampleValidator", "anomalies")
    if made is None:
        return None
    verdict = source.file("DataGate", "verdict", VERDICT_FILE)
    if verdict is not None:
        return anomalies.read(made, anomalies.verdict(verdict))
    return anomalies.read(made, anomalies.stopped_by(log_folder) if log_folder is not None else ())


def _card(index: int, name: str, splits: Sequence[SplitStatistics], findings: Sequence[Finding]) -> Card:
    sides = [split.features.get(name) for split in splits]
    # What has no values at all says nothing of its kind.
    kinds = {side.kind for side in sides if side is not None and side.values} or {
        side.kind for side in sides if side is not None
    }
    named = {split.name: side for split, side in zip(splits, sides, strict=True) if side is not None}
    return Card(
        id=f"feature-{index}",
        name=name,
        kind=" and ".join(sorted(kinds)),
        sides=sides,
        charts=distributions.charts(name, named),
        findings=[finding for finding in findings if finding.feature == name],
    )
