"""One shard of the ingest: read, encode, partition, write. What Beam spreads over workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfx.dsl.io import fileio

from components.errors import DataError
from components.example_gen.encoding import encode_examples, encode_feature
from components.example_gen.kinds import Kind
from components.example_gen.settings import DataSettings
from components.example_gen.sources import SHARD_BYTES, Batch, Piece, RejectedRow, Source, merge_kinds, source_of
from components.example_gen.writing import SplitWriter


@dataclass(frozen=True)
class Shard:
    """The part of the input that becomes one file in each split.

    Attributes:
        index: From 0.
        pieces: Of one or several files.
    """

    index: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Job:
    """What every worker must know.

    Attributes:
        settings: The recipe's `data` section.
        format: One of the values of `data.format` besides `auto`.
        num_shards: Of the whole input.
        split_uris: Split name -> folder for its Examples.
        partial_uri: The folder for files that are not complete.
        rejected_uri: The folder for malformed rows.
    """

    settings: DataSettings
    format: str
    num_shards: int
    split_uris: Mapping[str, str]
    partial_uri: str
    rejected_uri: str

    @property
    def source(self) -> Source:
        """The reader of the format."""
        return source_of(self.format, self.settings.delimiter)


@dataclass(frozen=True)
class Counts:
    """How many rows were written and how many were set aside."""

    rows: int = 0
    rejected: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.rows + other.rows, self.rejected + other.rejected)


def make_shards(pieces: Sequence[Piece]) -> list[Shard]:
    """Groups small pieces, in order, into shards of up to SHARD_BYTES; a larger piece is a shard of its own."""
    groups: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        if not groups or size + piece.size > SHARD_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.size
    return [Shard(index, tuple(group)) for index, group in enumerate(groups)]


def infer_shard(shard: Shard, job: Job) -> dict[str, Kind]:
    """Returns the kinds of the columns in a shard. Raises BadRowError as `on_bad_row` says."""
    fail = job.settings.on_bad_row == "fail"
    return merge_kinds([job.source.infer(piece, fail) for piece in shard.pieces])


def write_shard(shard: Shard, kinds: Mapping[str, Kind], job: Job) -> Counts:
    """Reads a shard again, now that the kinds of the whole input are known, and writes its Examples.

    Raises:
        BadRowError: A row is malformed, as `on_bad_row` says.
        DataError: `split_by` names no column, or one that cannot be hashed.
    """
    _check_split_by(job.settings.split_by, kinds)
    rejected: list[RejectedRow] = []
    num_rows = 0
    fail = job.settings.on_bad_row == "fail"
    buckets = job.settings.buckets
    with SplitWriter(job.split_uris, job.partial_uri, buckets, shard.index, job.num_shards) as writer:
        for piece in shard.pieces:
            for batch in job.source.read(piece, kinds):
                if batch.rejected and fail:
                    raise batch.rejected[0].as_error()
                rejected += batch.rejected
                num_rows += batch.num_rows
                _write_batch(batch, job.settings.split_by, piece.split, writer)
    if rejected:
        _write_rejected(rejected, f"{job.rejected_uri}/rejected-{shard.index:05d}-of-{job.num_shards:05d}.jsonl")
    return Counts(num_rows, len(rejected))


def _write_batch(batch: Batch, split_by: str | None, split: str | None, writer: SplitWriter) -> None:
    if not batch.num_rows:
        return
    if split is not None:
        writer.write_to(split, encode_examples(batch.columns, batch.num_rows))
        return
    keys = [encode_feature(column) for column in batch.columns if column.name == split_by]
    writer.write(encode_examples(batch.columns, batch.num_rows), keys[0] if keys else None)


def _write_rejected(rows: list[RejectedRow], uri: str) -> None:
    with fileio.open(uri, "w") as file:
        for row in rows:
            raw = None if row.raw is None else row.raw.decode("utf-8", "surrogateescape")
            entry = {"file": row.file, "line": row.line, "column": row.column, "reason": row.reason, "raw": raw}
            file.write(json.dumps(entry) + "\n")


def _check_split_by(split_by: str | None, kinds: Mapping[str, Kind]) -> None:
    if split_by is None or kinds.get(split_by) in (Kind.INT, Kind.BYTES):
        return
    if split_by not in kinds:
        raise DataError(
            f"data.split_by is {split_by!r}, expected one of the columns {', '.join(kinds)}.", "Correct data.split_by."
        )
    found = "no values" if kinds[split_by] is Kind.EMPTY else "floats"
    raise DataError(
        f"data.split_by is {split_by!r}, a column of {found}, expected integers or text.",
        "Choose a column that identifies what must stay together.",
    )
