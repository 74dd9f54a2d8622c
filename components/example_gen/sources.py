"""What every file format offers to the ingest, and which format is read by what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from components.errors import BadRowError
from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind

SHARD_BYTES = 64 << 20
"""How much of the input one worker reads, encodes and writes at a time."""


@dataclass(frozen=True)
class Piece:
    """A part of one file: bytes of CSV or JSON lines, row groups of Parquet.

    Attributes:
        file: The path.
        start: The first byte (of the decompressed text) or row group.
        end: Behind the last; None is the end of the file.
        size: Its size in bytes as stored, to balance the shards.
        first_line: The number, from 1, of the line at `start`; 0 for Parquet.
    """

    file: str
    start: int
    end: int | None
    size: int
    first_line: int = 0


@dataclass(frozen=True)
class RejectedRow:
    """A malformed row: where it stands, what is wrong with it, and the row itself, byte by byte."""

    file: str
    line: int
    column: str | None
    reason: str
    raw: bytes

    def as_error(self) -> BadRowError:
        """Returns the error that stops the run."""
        where = f"{self.file}, line {self.line}" + (f", column {self.column!r}" if self.column is not None else "")
        return BadRowError(
            f"{where}: {self.reason}",
            "Mend the row, or set `data.on_bad_row: set_aside` to go on without such rows and have them collected.",
        )


@dataclass(frozen=True)
class Batch:
    """Some rows of a piece, typed: `num_rows` rows of every column, and the rows that could not be read."""

    columns: list[Column]
    num_rows: int
    rejected: list[RejectedRow] = field(default_factory=list)


class Source(Protocol):
    """One file format."""

    def peek_columns(self, file: str) -> list[str]:
        """Returns the names of the columns, from the beginning of the file."""

    def pieces(self, files: tuple[str, ...]) -> list[Piece]:
        """Checks that the files belong together, and cuts them into pieces of about SHARD_BYTES.

        Raises:
            DataError: A file is empty, or its columns are not those of the first.
        """

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        """Returns the kinds of the columns in a piece, in the order in which they appear.

        Raises:
            BadRowError: A row is malformed, and `fail` is set; otherwise such rows do not count.
        """

    def read(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        """Yields the rows of a piece, typed by `kinds`."""


def source_of(format_: str, delimiter: str) -> Source:
    """Returns the reader of a format: `csv`, `parquet` or `jsonl`."""
    if format_ == "csv":
        from components.example_gen.csv_source import CsvSource

        return CsvSource(delimiter)
    if format_ == "jsonl":
        from components.example_gen.jsonl_source import JsonlSource

        return JsonlSource()
    from components.example_gen.parquet_source import ParquetSource

    return ParquetSource()


def merge_kinds(parts: list[dict[str, Kind]]) -> dict[str, Kind]:
    """Returns the kinds over all parts: of each column the least numeric."""
    merged: dict[str, Kind] = {}
    for part in parts:
        for name, kind in part.items():
            merged[name] = max(kind, merged.get(name, Kind.EMPTY))
    return merged
