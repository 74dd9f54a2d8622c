"""The data gate's verdict on anomalies in the data: `verdict.json`, a list of findings."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from contracts.content import ContentError, Record, read_text

NOTES_PROPERTY = "notes"
"""The custom property of Examples with what ingest has to say about the data: a JSON list of sentences."""

INFINITE_PROPERTY = "infinite"
"""The custom property of Examples that names columns with infinite numbers: JSON, from column to number of rows."""

VERDICT_FILE = "verdict.json"

DATA_SET = "the data set"
"""Stands in for the feature's name when an anomaly concerns the whole data set."""


class QuotedRow(Record):
    """A row that shows an anomaly.

    Attributes:
        row: Its position in the split, from 0.
        values: All columns as text; None for a missing value.
    """

    row: int
    values: dict[str, str | None]


class GateFinding(Record):
    """An anomaly.

    Attributes:
        split: The split that has it.
        feature: The feature, or DATA_SET.
        description: What is wrong.
        samples: Offending values, each with the number of rows that hold it.
        rows: Some of the rows that show it.
    """

    split: str
    feature: str
    description: str = ""
    samples: list[str] = Field(default_factory=list)
    rows: list[QuotedRow] = Field(default_factory=list)


GATE_FINDINGS = TypeAdapter(list[GateFinding])


def read_verdict(path: Path) -> list[GateFinding]:
    """Reads the data gate's verdict on data that it let pass.

    Raises:
        ContentError: The verdict is missing or broken.
    """
    try:
        return GATE_FINDINGS.validate_json(read_text(path))
    except ValidationError as error:
        raise ContentError(path, f"does not hold what it should: {error.errors()[0]['msg']}") from error
