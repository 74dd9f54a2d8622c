"""What every file format offers to the ingest: pieces of files, read in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from contracts.rejected_rows import RejectedRow

SHARD_BYTES = 64 << 20
"""How much of the input one worker reads, encodes and writes at a time."""


@dataclass(frozen=True)
class Piece:
    """A part of one file: bytes of CSV or JSON lines, row groups of Parquet, a batch of CIFAR-10; or some image files.

    Attributes:
        file: The path; of image files, the data folder.
        start: The first byte (of the decompressed text) or row group.
        end: Behind the last; None is the end of the file.
        size: Its size in bytes as stored, to balance the shards.
        first_line: The number, from 1, of the line at `start`; 0 for Parquet.
        names: Of image files, their paths below the data folder; of CIFAR-10, the batch and the file it is in; else
            empty.
        classes: The names of the classes of the whole input, by class id; empty for tables.
        split: The split of all its rows; None leaves each row to its hash.
    """

    file: str
    start: int
    end: int | None
    size: int
    first_line: int = 0
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    split: str | None = None


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

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        """Checks that the files belong together, and cuts them into pieces of about SHARD_BYTES.

        No piece has rows of two splits.

        Raises:
            DataError: A file is empty, or its columns are not those of the first.
        """

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        """Returns the kinds of the columns in a piece, in the order in which they appear.

        Raises:
            BadRowError: A row is malformed, and `fail` is set; otherwise such rows do not count. A format whose
                columns need no inference leaves malformed rows to `read`.
        """

    def read(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        """Yields the rows of a piece, typed by `kinds`."""


def assign_splits(pieces: Iterable[Piece], inputs: InputFiles) -> list[Piece]:
    """Returns the pieces with their splits, where `data.splits` holds patterns."""
    if not inputs.splits:
        return list(pieces)
    return [replace(p, split=inputs.splits[p.names[0] if p.names else inputs.name_of(p.file)]) for p in pieces]


def merge_kinds(parts: list[dict[str, Kind]]) -> dict[str, Kind]:
    """Returns the kinds over all parts: of each column the least numeric."""
    merged: dict[str, Kind] = {}
    for part in parts:
        for name, kind in part.items():
            merged[name] = max(kind, merged.get(name, Kind.EMPTY))
    return merged
