"""What every file format offers the ingest: pieces of files, read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from contracts.rejected_rows import RejectedRow

Place: TypeAlias = tuple[int | None, bytes | None]

SHARD_BYTES = 64 << 20
"""How much of the input one worker reads, encodes and writes at a time."""


@dataclass(frozen=True)
class Piece:
    """Part of a file (bytes of CSV or JSON lines, row groups of Parquet, a batch of CIFAR-10), or several image files.

    Attributes:
        file: The path; for image files, the data folder.
        start: The first byte (of the decompressed text) or row group.
        end: One past the last; None is the end of the file.
        size: Its size in bytes as stored, to balance the shards.
        first_line: The number (from 1) of the line at `start`; 0 for Parquet.
        names: For image files, their paths below the data folder; for CIFAR-10, the batch and the file that holds it;
            else empty.
        classes: The class names of the whole input, by class id; empty for tables.
        split: The split of all its rows; None lets each row's hash decide.
        encoding: The encoding of a text file.
    """

    file: str
    start: int
    end: int | None
    size: int
    first_line: int = 0
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    split: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Batch:
    """Typed rows of a piece.

    Attributes:
        columns: Each with `num_rows` rows.
        num_rows: How many rows.
        rejected: Rows that could not be read.
        place: Finds a row by its position in the batch: the number of its line (of its row, in a format without lines)
            and its bytes, or None.
    """

    columns: list[Column]
    num_rows: int
    rejected: list[RejectedRow] = field(default_factory=list)
    place: Callable[[int], Place] = lambda _: (None, None)


class Source(Protocol):
    """One file format."""

    def peek_columns(self, file: str) -> list[str]:
        """Returns the column names, reading only the beginning of the file."""

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        """Checks that the files belong together, and cuts them into pieces of about SHARD_BYTES.

        No piece has rows of two splits.

        Raises:
            DataError: A file is empty, or its columns differ from those of the first.
        """

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        """Returns the kinds of the columns in a piece, in the order in which they appear.

        Raises:
            BadRowError: A row is malformed and `fail` is set; otherwise such rows are ignored. A format whose columns
                need no inference leaves malformed rows to `read_batches`.
        """

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        """Yields the rows of a piece, typed by `kinds`."""


def assign_splits(pieces: Iterable[Piece], inputs: InputFiles) -> list[Piece]:
    """Returns the pieces with their splits filled in where `data.splits` holds patterns."""
    if not inputs.splits:
        return list(pieces)
    return [replace(p, split=inputs.splits[p.names[0] if p.names else inputs.name_of(p.file)]) for p in pieces]


def merge_kinds(parts: list[dict[str, Kind]]) -> dict[str, Kind]:
    """Returns the kind of each column over all parts: the least numeric one."""
    merged: dict[str, Kind] = {}
    for part in parts:
        for name, kind in part.items():
            merged[name] = max(kind, merged.get(name, Kind.EMPTY))
    return merged
