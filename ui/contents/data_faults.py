"""What is wrong with the data: rows that ExampleGen set aside, and anomalies that ExampleValidator found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pydantic import Field
from tensorflow_metadata.proto.v0 import anomalies_pb2

from contracts import content
from contracts.data_verdict import DATA_SET, GateFinding, QuotedRow
from contracts.file_names import ANOMALIES_FILE, FAILURE_FILE
from contracts.rejected_rows import RejectedRow, read_rejected_rows
from metadata.records import ArtifactRecord
from ui.contents.statistics import split_folder, split_names

MOST_READ = 10_000
FIRST = 10
MOST_REASONS = 10


@dataclass(frozen=True)
class ShownRow:
    """A row, or an image file, that was set aside.

    Attributes:
        file: The file.
        line: From 1; None for an image file.
        column: Which column is at fault, or None.
        reason: What is wrong with it.
        raw: The row itself, or None; bytes that are not valid UTF-8 are replaced by U+FFFD.
    """

    file: str
    line: int | None
    column: str | None
    reason: str
    raw: str | None


@dataclass(frozen=True)
class Rejected:
    """The rows that were set aside.

    Attributes:
        count: How many rows.
        read: How many of them `columns` covers.
        columns: The columns at fault (None if none is named) with numbers of rows, the commonest first.
        first: The first rows.
        folder: Where all of them are.
    """

    count: int
    read: int
    columns: tuple[tuple[str | None, int], ...]
    first: tuple[ShownRow, ...]
    folder: str


def read_rejected(artifact: ArtifactRecord) -> Rejected | None:
    """Reads a RejectedRows artifact; None if nothing was set aside."""
    count = int(artifact.properties.get("num_rows", 0))
    if not count:
        return None
    rows = [_shown_row(row) for row in islice(read_rejected_rows(artifact.path), MOST_READ)]
    columns = Counter(row.column for row in rows).most_common(MOST_REASONS)
    return Rejected(count, len(rows), tuple(columns), tuple(rows[:FIRST]), artifact.uri)


def _shown_row(row: RejectedRow) -> ShownRow:
    raw = None if row.raw is None else row.raw.decode("utf-8", "replace")
    return ShownRow(_printable(row.file), row.line, row.column, _printable(row.reason), raw)


def _printable(text: str) -> str:
    """Replaces lone surrogates, which stand for stray bytes, so that the text can be encoded as UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Failure(content.Record):
    findings: list[GateFinding] = Field(default_factory=list)


@dataclass(frozen=True)
class Finding:
    """An anomaly.

    Attributes:
        split: The split that has it.
        feature: The feature, or DATA_SET.
        summary: In a few words.
        description: In a sentence or two.
        samples: Offending values, each with the number of rows that hold it.
        rows: Some of the rows that show it.
    """

    split: str
    feature: str
    summary: str
    description: str
    samples: tuple[str, ...] = ()
    rows: tuple[QuotedRow, ...] = ()


def read_anomalies(anomalies: ArtifactRecord, verdict: Iterable[GateFinding] = ()) -> list[Finding]:
    """Reads the anomalies of all splits, those of the data set first.

    Args:
        anomalies: The ExampleAnomalies artifact.
        verdict: The data gate's findings about them.

    Raises:
        ContentError: A file is missing or broken.
    """
    gate_findings = {(entry.split, entry.feature): entry for entry in verdict}
    findings: list[Finding] = []
    for split in split_names(anomalies):
        proto = content.read_proto(split_folder(anomalies, split) / ANOMALIES_FILE, anomalies_pb2.Anomalies)
        findings += (
            _quoted(finding, gate_findings.get((split, finding.feature)))
            for finding in anomalies_of_split(split, proto)
        )
    return sorted(findings, key=lambda finding: finding.feature != DATA_SET)


def anomalies_of_split(split: str, proto: anomalies_pb2.Anomalies) -> list[Finding]:
    """The anomalies of a split, by feature."""
    findings = []
    if proto.HasField("dataset_anomaly_info"):
        findings.append(_finding(split, DATA_SET, proto.dataset_anomaly_info))
    return findings + [_finding(split, name, info) for name, info in sorted(proto.anomaly_info.items())]


def read_stopping_verdict(log_folder: Path) -> list[GateFinding]:
    """Reads the data gate's findings when it stopped a run, from `failure.json`, as there is no artifact; may be empty.

    Raises:
        ContentError: The file is broken.
    """
    path = log_folder / FAILURE_FILE
    return content.read_record(path, _Failure).findings if path.exists() else []


def _finding(split: str, feature: str, info: anomalies_pb2.AnomalyInfo) -> Finding:
    return Finding(split, feature, info.short_description or info.description, info.description)


def _quoted(finding: Finding, gate_finding: GateFinding | None) -> Finding:
    return (
        finding
        if gate_finding is None
        else replace(finding, samples=tuple(gate_finding.samples), rows=tuple(gate_finding.rows))
    )
