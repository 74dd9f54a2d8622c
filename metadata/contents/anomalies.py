"""What ExampleValidator found wrong with the data, with what the data gate quotes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError
from tensorflow_metadata.proto.v0 import anomalies_pb2

from metadata.contents import protos, reading
from metadata.contents.places import ANOMALIES_FILE, FAILURE_FILE
from metadata.contents.reading import ContentError
from metadata.contents.statistics import split_folder, split_names
from metadata.records import ArtifactRecord

DATA_SET = "the data set"


class QuotedRow(reading.Record):
    """A row in which an anomaly is seen.

    Attributes:
        row: Its place in the split, from 0.
        values: By column; None where it has none.
    """

    row: int
    values: dict[str, str | None]


class Said(reading.Record):
    """What the data gate writes of an anomaly; see components/data_gate.py.

    Attributes:
        split: Where it is.
        feature: Which feature's.
        samples: Offending values, each with how many rows hold it.
        rows: Some of the rows in which it is seen.
    """

    split: str
    feature: str
    samples: list[str] = Field(default_factory=list)
    rows: list[QuotedRow] = Field(default_factory=list)


class _Failure(reading.Record):
    findings: list[Said] = Field(default_factory=list)


SAID = TypeAdapter(list[Said])


@dataclass(frozen=True)
class Finding:
    """An anomaly.

    Attributes:
        split: Where it is.
        feature: Which feature's, or DATA_SET.
        summary: In a few words.
        description: In a sentence or two.
        samples: Offending values, each with how many rows hold it.
        rows: Some of the rows in which it is seen.
    """

    split: str
    feature: str
    summary: str
    description: str
    samples: tuple[str, ...] = ()
    rows: tuple[QuotedRow, ...] = ()


def read(anomalies: ArtifactRecord, verdict: Iterable[Said] = ()) -> list[Finding]:
    """The anomalies of all splits, those of the data set first.

    Args:
        anomalies: The ExampleAnomalies artifact.
        verdict: What the data gate says of them.

    Raises:
        ContentError: A file is missing or broken.
    """
    said = {(entry.split, entry.feature): entry for entry in verdict}
    found: list[Finding] = []
    for split in split_names(anomalies):
        proto = protos.binary(split_folder(anomalies, split) / ANOMALIES_FILE, anomalies_pb2.Anomalies)
        found += (_quoted(finding, said.get((split, finding.feature))) for finding in of_proto(split, proto))
    return sorted(found, key=lambda finding: finding.feature != DATA_SET)


def of_proto(split: str, proto: anomalies_pb2.Anomalies) -> list[Finding]:
    """The anomalies of a split, by feature."""
    found = []
    if proto.HasField("dataset_anomaly_info"):
        found.append(_finding(split, DATA_SET, proto.dataset_anomaly_info))
    return found + [_finding(split, name, info) for name, info in sorted(proto.anomaly_info.items())]


def verdict(path: Path) -> list[Said]:
    """What the data gate said of data that it let pass: its `verdict.json`.

    Raises:
        ContentError: It is missing or broken.
    """
    try:
        return SAID.validate_json(reading.text(path))
    except ValidationError as error:
        raise ContentError(path, f"does not hold what it should: {error.errors()[0]['msg']}") from error


def stopped_by(log_folder: Path) -> list[Said]:
    """What the data gate said when it stopped a run, which leaves no artifact but `failure.json`; else nothing.

    Raises:
        ContentError: The file is broken.
    """
    path = log_folder / FAILURE_FILE
    return reading.record(path, _Failure).findings if path.exists() else []


def _finding(split: str, feature: str, info: anomalies_pb2.AnomalyInfo) -> Finding:
    return Finding(split, feature, info.short_description or info.description, info.description)


def _quoted(finding: Finding, said: Said | None) -> Finding:
    return finding if said is None else replace(finding, samples=tuple(said.samples), rows=tuple(said.rows))
