"""The malformed rows that ExampleGen sets aside: JSON lines, one file per shard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import BadRowError


@dataclass(frozen=True)
class RejectedRow:
    """A malformed row: where it is, what is wrong with it, and the row itself, byte for byte.

    In a format without lines `line` is the row's number, and `raw` is None. For a file that is a single row, such as an
    image, both are None: the file itself says more.
    """

    file: str
    line: int | None
    column: str | None
    reason: str
    raw: bytes | None

    def as_error(self) -> BadRowError:
        """The error that stops the run."""
        if self.line is None:
            return BadRowError(
                f"{self.file}: {self.reason}",
                "Mend or remove the file, or set `data.on_bad_row: set_aside` to go on without such files and have "
                "them listed.",
            )
        unit = "row" if self.raw is None else "line"
        where = f"{self.file}, {unit} {self.line}" + (f", column {self.column!r}" if self.column is not None else "")
        return BadRowError(
            f"{where}: {self.reason}",
            "Mend the row, or set `data.on_bad_row: set_aside` to go on without such rows and have them collected.",
        )

    def to_json(self) -> str:
        """A line of the file; bytes that are not valid UTF-8 become lone surrogates."""
        raw = None if self.raw is None else self.raw.decode("utf-8", "surrogateescape")
        return json.dumps({**vars(self), "raw": raw})

    @classmethod
    def from_json(cls, line: str) -> RejectedRow:
        """The inverse of `to_json`."""
        entry = json.loads(line)
        raw = None if entry["raw"] is None else entry["raw"].encode("utf-8", "surrogateescape")
        return cls(entry["file"], entry["line"], entry["column"], entry["reason"], raw)


def rejected_rows_file(shard: int, num_shards: int) -> str:
    """The name of a shard's file."""
    return f"rejected-{shard:05d}-of-{num_shards:05d}.jsonl"


def read_rejected_rows(folder: Path) -> Iterator[RejectedRow]:
    """Yields the rows in all files of an artifact."""
    for path in sorted(folder.glob("rejected-*.jsonl")):
        with path.open(encoding="utf-8") as file:
            yield from map(RejectedRow.from_json, file)
