"""One shard of the ingest, the unit that Beam distributes to workers: read, encode, partition, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tfx.dsl.io import fileio

from components.example_gen.checks import RowChecks
from components.example_gen.contract import SHARD_BYTES, Batch, Piece, Source, merge_kinds
from components.example_gen.encoding import encode_examples, encode_feature
from components.example_gen.kinds import Kind
from components.example_gen.outcome import Outcome
from components.example_gen.settings import DataSettings
from components.example_gen.sources import source_of
from components.example_gen.split_writer import SplitWriter
from components.example_gen.time_split import TimeSplit
from components.progress import count_at
from contracts.errors import DataError
from contracts.near_names import did_you_mean
from contracts.rejected_rows import RejectedRow, rejected_rows_file


@dataclass(frozen=True)
class Shard:
    """The part of the input that becomes one file in each split.

    Attributes:
        index: From 0.
        pieces: Parts of one or several files.
    """

    index: int
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """The bytes of its pieces, as they are stored."""
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True)
class Job:
    """What every worker must know.

    Attributes:
        settings: The recipe's `data` section.
        format: One of the values of `data.format` besides `auto`.
        num_shards: The number of shards in the whole input.
        split_uris: Split name -> folder for its Examples.
        partial_uri: The folder for incomplete files.
        rejected_uri: The folder for malformed rows.
        labels: The columns without which a row is of no use, where the data have them.
        progress: The file of the node's progress, if it reports any.
    """

    settings: DataSettings
    format: str
    num_shards: int
    split_uris: Mapping[str, str]
    partial_uri: str
    rejected_uri: str
    labels: tuple[str, ...] = ()
    progress: str | None = None

    @property
    def source(self) -> Source:
        """The reader of the format."""
        return source_of(self.format, self.settings)


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
    """Returns the kinds of the columns in a shard. Raises BadRowError on a malformed row if `on_bad_row` is `fail`."""
    fail = job.settings.on_bad_row == "fail"
    return merge_kinds([job.source.infer(piece, fail) for piece in shard.pieces])


def write_shard(shard: Shard, kinds: Mapping[str, Kind], job: Job) -> Outcome:
    """Reads a shard again, now that the kinds of the whole input are known, and writes its Examples.

    Raises:
        BadRowError: A row is malformed, and `on_bad_row` is `fail`.
        DataError: `split_by` names no column, or one that cannot be hashed; `split_by_time` no column, or one without
            moments; or `columns` names none.
    """
    _check_split_by(job.settings.split_by, kinds)
    if job.settings.split_by_time:
        TimeSplit(job.settings.split_by_time).check_column(kinds)
    _check_declared(job.settings.columns, kinds)
    checks = RowChecks(job.settings, job.labels)
    rejected: list[RejectedRow] = []
    rows: Counter[str] = Counter()
    buckets = job.settings.buckets
    with SplitWriter(job.split_uris, job.partial_uri, buckets, shard.index, job.num_shards) as writer:
        for piece in shard.pieces:
            for read in job.source.read_batches(piece, kinds):
                batch = checks.check(read, piece.file)
                rejected += batch.rejected
                rows.update(_write_batch(batch, job.settings, piece.split, writer))
                count_at(job.progress, batch.num_rows)
            count_at(job.progress, 0, piece.size)
    if rejected:
        _write_rejected(rejected, f"{job.rejected_uri}/{rejected_rows_file(shard.index, job.num_shards)}")
    names = {name: kind.name for name, kind in kinds.items()}
    return Outcome(shard.index, dict(rows), len(rejected), checks.faults, checks.oddities, names)


def _write_batch(batch: Batch, settings: DataSettings, split: str | None, writer: SplitWriter) -> Mapping[str, int]:
    """Returns how many rows were written to each split."""
    if not batch.num_rows:
        return {}
    examples = encode_examples(batch.columns, batch.num_rows)
    if split is not None:
        return writer.write_to(split, examples)
    if settings.split_by_time:
        return writer.write_at(TimeSplit(settings.split_by_time).places(batch), examples)
    keys = [encode_feature(column) for column in batch.columns if column.name == settings.split_by]
    return writer.write(examples, keys[0] if keys else None)


def _write_rejected(rows: list[RejectedRow], uri: str) -> None:
    with fileio.open(uri, "w") as file:
        for row in rows:
            file.write(row.to_json() + "\n")


def _check_declared(declared: Collection[str], kinds: Mapping[str, Kind]) -> None:
    for name in declared:
        if name not in kinds:
            near = did_you_mean(name, list(kinds))
            raise DataError(
                f"data.columns gives the type of {name!r}, which the data do not have. {near}",
                "Correct data.columns.",
            )


def _check_split_by(split_by: str | None, kinds: Mapping[str, Kind]) -> None:
    if split_by is None or kinds.get(split_by) in (Kind.INT, Kind.BYTES):
        return
    if split_by not in kinds:
        raise DataError(
            f"data.split_by is {split_by!r}, expected one of the columns {', '.join(kinds)}.", "Correct data.split_by."
        )
    values = "no values" if kinds[split_by] is Kind.EMPTY else "floats"
    raise DataError(
        f"data.split_by is {split_by!r}, a column of {values}, expected integers or text.",
        "Choose a column that identifies what must stay together.",
    )
