"""Writes serialized Examples as TFRecords, each to its split."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import isal_zlib
from tfx.dsl.io import fileio

from components.example_gen.hashing import binary_values, data_of, hash_buckets
from components.example_gen.tfrecords import COMPRESSION_LEVEL, GZIP, frame


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
        return self._write_chosen(np.searchsorted(self._bounds, buckets, side="right"), frame(examples, records))

    def write_at(self, places: npt.NDArray[np.int64], examples: pa.Array) -> dict[str, int]:
        """Appends a batch, each Example to the split in a place, and returns how many went to each.

        Args:
            places: (rows,) positions in `uris`.
            examples: (rows,) large_binary array of serialized Examples.
        """
        return self._write_chosen(places, frame(examples, binary_values(examples)))

    def _write_chosen(self, places: npt.NDArray[np.int64], framed: pa.Array) -> dict[str, int]:
        written = {}
        for index, (split, file) in enumerate(self._file_of.items()):
            chosen = framed.filter(pa.array(places == index))
            file.write(data_of(chosen))
            written[split] = len(chosen)
        return written

    def write_to(self, split: str, examples: pa.Array) -> dict[str, int]:
        """Appends (rows,) serialized Examples, a large_binary array, to one split, and returns their number."""
        self._file_of[split].write(data_of(frame(examples, binary_values(examples))))
        return {split: len(examples)}


class _GzipFile:
    def __init__(self, uri: str, partial_uri: str) -> None:
        self._uri, self._partial = uri, f"{partial_uri}/{uuid.uuid4().hex}"
        self._file = fileio.open(self._partial, "wb")
        self._compressor = isal_zlib.compressobj(COMPRESSION_LEVEL, wbits=GZIP)

    def write(self, data: memoryview | bytes) -> None:
        self._file.write(self._compressor.compress(data))

    def close(self, keep: bool) -> None:
        if keep:
            self._file.write(self._compressor.flush())
        self._file.close()
        if keep:
            fileio.rename(self._partial, self._uri, overwrite=True)
