"""Writes serialized Examples as TFRecords, each to its split."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import TracebackType

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from isal import isal_zlib
from tfx.dsl.io import fileio

from components.example_gen.encoding import by_length, lengths, no_separator
from components.example_gen.hashing import binary_values, data_of, hash_buckets

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

    def write(self, examples: pa.Array, keys: pa.Array | None = None) -> dict[str, int]:
        """Appends a batch, each Example to the split that its hash selects, and returns how many went to each.

        Args:
            examples: (rows,) large_binary array of serialized Examples.
            keys: (rows,) large_binary array to hash instead of the Examples; None hashes the Examples.
        """
        records = binary_values(examples)
        buckets = hash_buckets(records if keys is None else binary_values(keys), int(self._bounds[-1]))
        return self._write_chosen(np.searchsorted(self._bounds, buckets, side="right"), _frame(examples, records))

    def write_at(self, places: npt.NDArray[np.int64], examples: pa.Array) -> dict[str, int]:
        """Appends a batch, each Example to the split in a place, and returns how many went to each.

        Args:
            places: (rows,) positions in `uris`.
            examples: (rows,) large_binary array of serialized Examples.
        """
        return self._write_chosen(places, _frame(examples, binary_values(examples)))

    def _write_chosen(self, places: npt.NDArray[np.int64], framed: pa.Array) -> dict[str, int]:
        written = {}
        for index, (split, file) in enumerate(self._file_of.items()):
            chosen = framed.filter(pa.array(places == index))
            file.write(data_of(chosen))
            written[split] = len(chosen)
        return written

    def write_to(self, split: str, examples: pa.Array) -> dict[str, int]:
        """Appends (rows,) serialized Examples, a large_binary array, to one split, and returns their number."""
        self._file_of[split].write(data_of(_frame(examples, binary_values(examples))))
        return {split: len(examples)}


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
