"""TFRecords of serialized `tf.train.Example`s, plain or gzip. The records say what their features hold."""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import BinaryIO, cast

import google_crc32c
import pyarrow as pa
from isal import igzip

from components.example_gen.arrow_columns import ArrowColumns
from components.example_gen.contract import Batch, Piece, Place, merge_kinds
from components.example_gen.conversion import Conversion
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from components.example_gen.text_files import DAMAGED_GZIP
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

_BATCH_ROWS = 4_096
_PEEK_ROWS = 100
_GZIP_MAGIC = b"\x1f\x8b"
_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")
_CRC_MASK_DELTA = 0xA282EAD8  # As in tfrecords, which has the same form.
_FIX = "Copy it again, or write it again with tf.io.TFRecordWriter."


class TFRecordSource:
    """TFRecords; see `contract.Source`.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._conversion = Conversion(reading)
        self._columns = ArrowColumns(self._conversion)

    def peek_columns(self, file: str) -> list[str]:
        return list(_decode(list(islice(_records(file), _PEEK_ROWS))).schema.names)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        for file in map(str, inputs.files):
            if next(_records(file), None) is None:
                raise DataError(f"{file} holds no records, expected tf.train.Examples.", "Check how it is written.")
        return [Piece(str(file), 0, None, os.path.getsize(file)) for file in inputs.files]

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        parts = []
        for batch, rejected, _ in _batches(piece.file):
            if rejected and fail:
                raise rejected[0].as_error()
            parts.append({field.name: _kind(field.type) for field in batch.schema})
        return self._conversion.with_declared(merge_kinds(parts))

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        for batch, rejected, places in _batches(piece.file):
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            absent = pa.nulls(batch.num_rows)
            columns = [
                self._columns.column(piece.file, name, kind, arrays.get(name, absent)) for name, kind in kinds.items()
            ]
            yield Batch(columns, batch.num_rows, rejected, places.__getitem__)


def _batches(file: str) -> Iterator[tuple[pa.RecordBatch, list[RejectedRow], list[Place]]]:
    """Yields decoded records, those that are no Examples, and where each of the decoded ones is."""
    numbered = enumerate(_records(file), 1)
    while some := list(islice(numbered, _BATCH_ROWS)):
        rejected: list[RejectedRow] = []
        try:
            batch = _decode([record for _, record in some])
        except ValueError:
            bad = {number for number, record in some if not _is_example(record)}
            reason = "found a record that is no tf.train.Example"
            rejected = [RejectedRow(file, number, None, reason, None) for number in sorted(bad)]
            some = [(number, record) for number, record in some if number not in bad]
            batch = _decode([record for _, record in some])
        yield batch, rejected, [(number, None) for number, _ in some]


def _is_example(record: bytes) -> bool:
    try:
        _decode([record])
    except ValueError:
        return False
    return True


def _decode(records: list[bytes]) -> pa.RecordBatch:
    """Returns a list column for each feature. Raises ValueError if a record is no Example."""
    # Imported here, for preflight imports this module for every format. It warns of versions of Google's libraries.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="google")
        from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    try:
        return ExamplesToRecordBatchDecoder().DecodeBatch(records)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _kind(type_: pa.DataType) -> Kind:
    if pa.types.is_null(type_):
        return Kind.EMPTY
    value = type_.value_type
    return Kind.INT if pa.types.is_integer(value) else Kind.FLOAT if pa.types.is_floating(value) else Kind.BYTES


def _records(file: str) -> Iterator[bytes]:
    """Yields the records of a file.

    Raises:
        DataError: It is damaged.
    """
    try:
        with _open(file) as opened:
            number = 0
            while header := opened.read(_HEADER.size):
                number += 1
                yield _record(file, number, header, opened)
    except DAMAGED_GZIP as error:
        raise DataError(f"{file} is damaged gzip: {error}.", _FIX) from error


def _open(file: str) -> BinaryIO:
    with open(file, "rb") as opened:
        packed = opened.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    return cast(BinaryIO, igzip.open(file, "rb")) if packed else open(file, "rb")


def _record(file: str, number: int, header: bytes, opened: BinaryIO) -> bytes:
    if len(header) == _HEADER.size:
        size, crc = _HEADER.unpack(header)
        if crc != _masked_crc(header[:8]):
            raise DataError(f"{file}, record {number}: found no TFRecord, expected its length and checksum.", _FIX)
        data, footer = opened.read(size), opened.read(_FOOTER.size)
        if len(footer) == _FOOTER.size:
            if _FOOTER.unpack(footer)[0] != _masked_crc(data):
                raise DataError(f"{file}, record {number}: its checksum is wrong.", _FIX)
            return data
    raise DataError(f"{file} ends in the middle of record {number}.", _FIX)


def _masked_crc(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _CRC_MASK_DELTA) & 0xFFFFFFFF
