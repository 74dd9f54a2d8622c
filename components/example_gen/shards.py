"""One shard of the ingest, the unit that Beam distributes to workers: read, encode, partition, write."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from isal import isal_zlib
from tfx.dsl.io import fileio

from components.example_gen.contract import SHARD_BYTES, Batch, Piece, Source, merge_kinds
from components.example_gen.encoding import by_length, encode_examples, encode_feature, lengths, no_separator
from components.example_gen.kinds import Kind
from components.example_gen.settings import DataSettings
from components.example_gen.sources import source_of
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow, rejected_rows_file

_GZIP = 31  # zlib's wbits: a gzip header and the largest window
_COMPRESSION_LEVEL = 1  # isal's 2 and 3 shrink taxi Examples by no more than 1 %.
_CRC_MASK_DELTA = 0xA282EAD8  # TFRecord stores masked CRCs (tensorflow/core/lib/hash/crc32c.h).


class SplitWriter:
    """Writes one shard's Examples, each to the split that stock TFX would choose or to a named one.

    A file appears in its split only when it is complete, so that a worker that dies or runs twice leaves no half file.

    Args:
        uris: Split name -> folder; in the order of `buckets`, unless that is empty.
        partial_uri: A folder for incomplete files.
        buckets: Split name -> number of hash buckets; empty if all Examples go to named splits.
        shard: The shard's index, from 0.
        num_shards: The number of shards in the whole artifact.
    """

    def __init__(
        self, uris: Mapping[str, str], partial_uri: str, buckets: Mapping[str, int], shard: int, num_shards: int
    ) -> None:
        self._bounds = np.cumsum(list(buckets.values()))
        name = f"data_tfrecord-{shard:05d}-of-{num_shards:05d}.gz"
        self._files = [_GzipFile(f"{uri}/{name}", partial_uri) for uri in uris.values()]
        self._file_of = dict(zip(uris, self._files, strict=True))

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files:
            file.close(keep=error is None)

    def write(self, examples: pa.Array, keys: pa.Array | None = None) -> None:
        """Appends a batch, each Example to the split that its hash selects.

        Args:
            examples: (rows,) large_binary array of serialized Examples.
            keys: (rows,) large_binary array to hash instead of the Examples; None hashes the Examples.
        """
        records = binary_values(examples)
        buckets = hash_buckets(records if keys is None else binary_values(keys), int(self._bounds[-1]))
        splits = np.searchsorted(self._bounds, buckets, side="right")
        framed = _frame(examples, records)
        for index, file in enumerate(self._files):
            chosen = framed.filter(pa.array(splits == index))
            file.write(_data(chosen))

    def write_to(self, split: str, examples: pa.Array) -> None:
        """Appends (rows,) serialized Examples, a large_binary array, to one split."""
        self._file_of[split].write(_data(_frame(examples, binary_values(examples))))


class _GzipFile:
    def __init__(self, uri: str, partial_uri: str) -> None:
        self._uri, self._partial = uri, f"{partial_uri}/{uuid.uuid4().hex}"
        self._file = fileio.open(self._partial, "wb")
        self._compressor = isal_zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP)

    def write(self, data: memoryview | bytes) -> None:
        self._file.write(self._compressor.compress(data))

    def close(self, keep: bool) -> None:
        if keep:
            self._file.write(self._compressor.flush())
        self._file.close()
        if keep:
            fileio.rename(self._partial, self._uri, overwrite=True)


def hash_buckets(keys: list[bytes], num_buckets: int) -> npt.NDArray[np.uint64]:
    """Returns the (keys,) buckets: SHA-256 of the key, read as one big-endian number, modulo `num_buckets`."""
    sha256 = hashlib.sha256
    digests = b"".join([sha256(key).digest() for key in keys])
    words = np.frombuffer(digests, ">u4").reshape(len(keys), 8).astype(np.uint64)
    modulus = np.uint64(num_buckets)
    remainder = np.zeros(len(keys), np.uint64)
    for word in words.T:
        remainder = ((remainder << np.uint64(32)) | word) % modulus
    return remainder


def binary_values(array: pa.Array) -> list[bytes]:
    """Returns the elements of a large_binary array; many times faster than `to_pylist`."""
    data = bytes(_data(array))
    ends = np.concatenate(([0], np.cumsum(lengths(array)))).tolist()
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def _data(array: pa.Array) -> memoryview | bytes:
    """Returns the elements of a large_binary array end to end."""
    if not len(array):
        return b""
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
    return memoryview(array.buffers()[2])[offsets[0] : offsets[-1]]


def _frame(examples: pa.Array, records: list[bytes]) -> pa.Array:
    """Returns (rows,) TFRecords: length (uint64), its CRC, the data, their CRC, all little-endian."""
    header = by_length(lengths(examples), _frame_header)
    crc = google_crc32c.value
    crcs = _mask(np.fromiter((crc(record) for record in records), np.uint64, len(records))).astype("<u4")
    ends = np.arange(len(records) + 1, dtype=np.int64) * 4
    footer = pa.Array.from_buffers(pa.large_binary(), len(records), [None, pa.py_buffer(ends), pa.py_buffer(crcs)])
    return pc.binary_join_element_wise(header, examples, footer, no_separator())


def _frame_header(size: int) -> bytes:
    encoded = size.to_bytes(8, "little")
    crc = _mask(np.array([google_crc32c.value(encoded)], np.uint64))
    return encoded + int(crc[0]).to_bytes(4, "little")


def _mask(crcs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    rotated = (crcs >> np.uint64(15)) | (crcs << np.uint64(17))
    return ((rotated & np.uint64(0xFFFFFFFF)) + np.uint64(_CRC_MASK_DELTA)) & np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Shard:
    """The part of the input that becomes one file in each split.

    Attributes:
        index: From 0.
        pieces: Parts of one or several files.
    """

    index: int
    pieces: tuple[Piece, ...]


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
    """Returns the kinds of the columns in a shard. Raises BadRowError on a malformed row if `on_bad_row` is `fail`."""
    fail = job.settings.on_bad_row == "fail"
    return merge_kinds([job.source.infer(piece, fail) for piece in shard.pieces])


def write_shard(shard: Shard, kinds: Mapping[str, Kind], job: Job) -> Counts:
    """Reads a shard again, now that the kinds of the whole input are known, and writes its Examples.

    Raises:
        BadRowError: A row is malformed, and `on_bad_row` is `fail`.
        DataError: `split_by` names no column, or one that cannot be hashed.
    """
    _check_split_by(job.settings.split_by, kinds)
    rejected: list[RejectedRow] = []
    num_rows = 0
    fail = job.settings.on_bad_row == "fail"
    buckets = job.settings.buckets
    with SplitWriter(job.split_uris, job.partial_uri, buckets, shard.index, job.num_shards) as writer:
        for piece in shard.pieces:
            for batch in job.source.read_batches(piece, kinds):
                if batch.rejected and fail:
                    raise batch.rejected[0].as_error()
                rejected += batch.rejected
                num_rows += batch.num_rows
                _write_batch(batch, job.settings.split_by, piece.split, writer)
    if rejected:
        _write_rejected(rejected, f"{job.rejected_uri}/{rejected_rows_file(shard.index, job.num_shards)}")
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
            file.write(row.to_json() + "\n")


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
