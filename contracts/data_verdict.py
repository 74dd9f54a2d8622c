"""What the data gate says of the anomalies of the data: `verdict.json`, a list of findings."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from contracts.content import ContentError, Record, read_text

VERDICT_FILE = "verdict.json"

DATA_SET = "the data set"
"""Stands for a feature's name where an anomaly is not that of one feature."""


class QuotedRow(Record):
    """A row in which an anomaly is seen.

    Attributes:
        row: Its place in the split, from 0.
        values: All columns as text; None where there is no value.
    """

    row: int
    values: dict[str, str | None]


class GateFinding(Record):
    """An anomaly.

    Attributes:
        split: Where it is.
        feature: Which feature's, or DATA_SET.
        description: What is wrong.
        samples: Offending values, each with how many rows hold it.
        rows: Some of the rows in which it is seen.
    """

    split: str
    feature: str
    description: str = ""
    samples: list[str] = Field(default_factory=list)
    rows: list[QuotedRow] = Field(default_factory=list)


GATE_FINDINGS = TypeAdapter(list[GateFinding])


def read_verdict(path: Path) -> list[GateFinding]:
    """What the data gate says of data that it let pass.

    Raises:
        ContentError: It is missing or broken.
    """
    try:
        return GATE_FINDINGS.validate_json(read_text(path))
    except ValidationError as error:
        raise ContentError(path, f"does not hold what it should: {error.errors()[0]['msg']}") from error
