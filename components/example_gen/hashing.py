"""Which split a row belongs to: the hash of its Example, as stock TFX computes it. Imports neither TFX nor Beam."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.example_gen.encoding import lengths


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
    data = bytes(data_of(array))
    ends = np.concatenate(([0], np.cumsum(lengths(array)))).tolist()
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def data_of(array: pa.Array) -> memoryview | bytes:
    """Returns the elements of a large_binary array end to end."""
    if not len(array):
        return b""
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
    return memoryview(array.buffers()[2])[offsets[0] : offsets[-1]]
