"""The malformed rows that ExampleGen set aside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from metadata.contents.places import REJECTED_FILES
from metadata.records import ArtifactRecord

MOST_READ = 10_000
FIRST = 10
MOST_REASONS = 10


@dataclass(frozen=True)
class RejectedRow:
    """A row, or an image file, that could not be read.

    Attributes:
        file: Where it was.
        line: From 1; None for an image file.
        column: Which column is at fault, or None.
        reason: What is wrong with it.
        raw: The row as it stood, or None; bytes that are no UTF-8 as U+FFFD.
    """

    file: str
    line: int | None
    column: str | None
    reason: str
    raw: str | None


@dataclass(frozen=True)
class Rejected:
    """What was set aside.

    Attributes:
        count: How many rows.
        read: How many of them `columns` is about.
        columns: The columns at fault (None where none is named) and how many rows, the commonest first.
        first: The first rows.
        folder: Where all of them are.
    """

    count: int
    read: int
    columns: tuple[tuple[str | None, int], ...]
    first: tuple[RejectedRow, ...]
    folder: str


def read(artifact: ArtifactRecord) -> Rejected | None:
    """What is in a RejectedRows artifact; None where nothing was set aside."""
    count = int(artifact.properties.get("num_rows", 0))
    if not count:
        return None
    rows = [_row(entry) for entry in islice(_entries(artifact.path), MOST_READ)]
    columns = Counter(row.column for row in rows).most_common(MOST_REASONS)
    return Rejected(count, len(rows), tuple(columns), tuple(rows[:FIRST]), artifact.uri)


def _entries(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(REJECTED_FILES)):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _row(entry: dict[str, Any]) -> RejectedRow:
    return RejectedRow(
        file=_text(entry["file"]),
        line=entry["line"],
        column=entry["column"],
        reason=_text(entry["reason"]),
        raw=None if entry["raw"] is None else _text(entry["raw"]),
    )


def _text(text: str) -> str:
    """Text that can be written as UTF-8: rejected rows hold their stray bytes as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
