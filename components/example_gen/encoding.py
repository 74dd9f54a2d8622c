"""Columns to serialized `tf.train.Example`s, a batch at a time.

tfx-bsl's RecordBatchToExamplesEncoder writes the features of an Example in the order of a hash table. A row's split is
a hash of its bytes, so rows would not land in the splits of stock TFX, which hashes the deterministic form (features
in the order of their names). Hence our own encoder: an Example is a concatenation of pieces, a header and a payload for
each feature; a header depends only on its payload's length, and arrow joins the pieces.

The wire format (protobuf's encoding guide; tensorflow/core/example/*.proto), with every field length-delimited:

    Example  { 1: Features { 1: entry { 1: name, 2: Feature { 1: BytesList | 2: FloatList | 3: Int64List } } … } }
    BytesList { 1: value … }     FloatList { 1: packed little-endian float32 }     Int64List { 1: packed varint }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.kinds import Kind

Offsets = npt.NDArray[np.int64]

_FIELD_1, _FIELD_2 = b"\x0a", b"\x12"
_LIST_FIELD = {Kind.BYTES: b"\x0a", Kind.FLOAT: b"\x12", Kind.INT: b"\x1a"}


@dataclass(frozen=True)
class Column:
    """One feature of a batch of rows.

    Attributes:
        name: The feature's name.
        kind: What it holds; an EMPTY column becomes a Feature without a list.
        values: (values,) int64, float32 or binary array without nulls, the values of all rows end to end; None if
            EMPTY.
        offsets: (rows + 1,) int64; row i owns `values[offsets[i]:offsets[i + 1]]`, a missing value an empty range.
        wrong: Position of a value that could not be read -> what is wrong with it; its row is malformed.
        too_large: Position of an infinite value that was not written as such -> how it was written.
        padded: Position of an integer that was written with leading zeros -> how it was written; one at most.
    """

    name: str
    kind: Kind
    values: pa.Array | None
    offsets: Offsets
    wrong: Mapping[int, str] = field(default_factory=dict)
    too_large: Mapping[int, str] = field(default_factory=dict)
    padded: Mapping[int, str] = field(default_factory=dict)


def encode_examples(columns: Sequence[Column], num_rows: int) -> pa.Array:
    """Serializes rows as `tf.train.Example.SerializeToString(deterministic=True)` would.

    Args:
        columns: The features, in any order; names are unique.
        num_rows: The number of rows in each.

    Returns:
        (rows,) large_binary array.
    """
    pieces: list[pa.Array] = []
    for column in sorted(columns, key=lambda c: c.name.encode()):
        pieces += _entry_pieces(column, num_rows)
    features = pc.binary_join_element_wise(*pieces, no_separator())
    header = by_length(lengths(features), lambda n: _FIELD_1 + varint(n))
    return pc.binary_join_element_wise(header, features, no_separator())


def encode_feature(column: Column) -> pa.Array:
    """Serializes one column, which is not EMPTY, as `tf.train.Feature`s: (rows,) large_binary array."""
    payload = _payload(column)
    header = by_length(lengths(payload), lambda n: _feature(column.kind, n))
    return pc.binary_join_element_wise(header, payload, no_separator())


@cache
def no_separator() -> pa.Scalar:
    """The empty text between joined pieces. Made on demand: pyarrow imports pandas for it, a third of a second."""
    return pa.scalar(b"", pa.large_binary())


def lengths(array: pa.Array) -> Offsets:
    """Returns the (rows,) lengths in bytes of a large_binary array."""
    if not len(array):  # Arrow may then have no offsets at all.
        return np.zeros(0, np.int64)
    return np.diff(np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset))


def by_length(sizes: Offsets, make: Callable[[int], bytes]) -> pa.Array:
    """Returns the (rows,) large_binary array of `make(size)`, calling it once for each different size."""
    unique, indices = np.unique(sizes, return_inverse=True) if sizes.max(initial=0) > 65_535 else _small_unique(sizes)
    return pa.array([make(int(size)) for size in unique], pa.large_binary()).take(pa.array(indices))


def varint(number: int) -> bytes:
    """Returns protobuf's variable-length encoding of a non-negative number: seven bits a byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _small_unique(sizes: Offsets) -> tuple[Offsets, Offsets]:
    # Counting is several times faster than np.unique's sort.
    present = np.bincount(sizes) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[sizes]


def _entry_pieces(column: Column, num_rows: int) -> list[pa.Array]:
    name = column.name.encode()
    key = _FIELD_1 + varint(len(name)) + name + _FIELD_2
    if column.kind is Kind.EMPTY:
        entry = _FIELD_1 + varint(len(key) + 1) + key + varint(0)
        return [pa.array([entry], pa.large_binary()).take(pa.array(np.zeros(num_rows, np.int64)))]

    def header(payload_size: int) -> bytes:
        feature = _feature(column.kind, payload_size)
        value = varint(len(feature) + payload_size) + feature
        return _FIELD_1 + varint(len(key) + len(value) + payload_size) + key + value

    payload = _payload(column)
    return [by_length(lengths(payload), header), payload]


def _feature(kind: Kind, payload_size: int) -> bytes:
    """Returns a Feature up to its payload."""
    packed = _FIELD_1 + varint(payload_size) if kind is not Kind.BYTES and payload_size else b""
    return _LIST_FIELD[kind] + varint(len(packed) + payload_size) + packed


def _payload(column: Column) -> pa.Array:
    """Returns each row's values as encoded in its list: (rows,) large_binary array."""
    ends, data = _ENCODED_VALUES[column.kind](column.values)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends[column.offsets])), data]
    return pa.Array.from_buffers(pa.large_binary(), len(column.offsets) - 1, buffers)


def _encoded_floats(values: pa.Array) -> tuple[Offsets, pa.Buffer]:
    floats = values.to_numpy(zero_copy_only=False).astype("<f4", copy=False)
    return np.arange(len(floats) + 1, dtype=np.int64) * 4, pa.py_buffer(np.ascontiguousarray(floats))


def _encoded_bytes(values: pa.Array) -> tuple[Offsets, pa.Buffer]:
    if not len(values):
        return np.zeros(1, np.int64), pa.py_buffer(b"")
    values = values.cast(pa.large_binary())
    header = by_length(lengths(values), lambda n: _FIELD_1 + varint(n))
    joined = pc.binary_join_element_wise(header, values, no_separator())
    _, offsets, data = joined.buffers()
    return np.frombuffer(offsets, np.int64, len(joined) + 1), data or pa.py_buffer(b"")


def _encoded_ints(values: pa.Array) -> tuple[Offsets, pa.Buffer]:
    numbers = values.to_numpy(zero_copy_only=False).view(np.uint64)
    width = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    groups = numbers[:, None] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))[None, :]
    used = groups > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    encoded = (groups & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
    ends = np.concatenate(([0], np.cumsum(used.sum(axis=1, dtype=np.int64))))
    return ends, pa.py_buffer(encoded[used])


_ENCODED_VALUES: dict[Kind, Callable[[pa.Array], tuple[Offsets, pa.Buffer]]] = {
    Kind.INT: _encoded_ints,
    Kind.FLOAT: _encoded_floats,
    Kind.BYTES: _encoded_bytes,
}
