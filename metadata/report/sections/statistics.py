"""The data: what was set aside, anomalies, and the statistics of all splits side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from metadata.contents import anomalies, rejected, statistics
from metadata.contents.anomalies import DATA_SET, Finding
from metadata.contents.places import VERDICT_FILE
from metadata.contents.rejected import Rejected
from metadata.report import features
from metadata.report.features import Card
from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class Statistics:
    """The data of a run.

    Attributes:
        splits: Name and rows of each split.
        cards: The features, those with anomalies first, else in the order of the statistics.
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
        cards=sorted(features.cards(splits, found or []), key=lambda card: not card.findings),
        data_set=[finding for finding in found or [] if finding.feature == DATA_SET],
        findings=len(found or []),
        others=[finding for finding in found or [] if finding.feature not in {DATA_SET, *names}],
        checked=found is not None,
        # Where something is wrong, that alone is open.
        opened=len(names) <= features.MOST_OPEN and not found,
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
