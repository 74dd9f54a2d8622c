"""Reads rows to predict from CSV, JSON or TFRecords; errors say where in the file they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from contracts.errors import BadRowError, DataError
from pipeline.commands.predict.columns import Column, bad_value, place

STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"
LENGTH = struct.Struct("<Q")
CRC_BYTES = 4

Row = dict[str, Any]


def from_csv(
    path: str, columns: Sequence[Column], ignored: Iterable[str], note: Callable[[str], None]
) -> Iterator[Row]:
    """Reads rows of a CSV file, whose first line names its columns; an empty cell is a missing value.

    Args:
        path: The file, or `-` for standard input.
        columns: The signature's columns.
        ignored: Columns that the file may have and that are not sent.
        note: Called with a message about those that it has.

    Raises:
        DataError: The columns do not fit.
        BadRowError: A row does not fit; the message names file, line and column.
    """
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise DataError(f"{_name(path)} is empty.", "Give it a first line with the columns' names.")
            placed = place(columns, header, ignored, f"{_name(path)}:1")
            if left_out := [name for name in header if name not in placed]:
                note(f"Not taken by the model: {', '.join(left_out)}")
            for cells in reader:
                if cells:
                    yield _csv_row(f"{_name(path)}:{reader.line_num}", header, cells, placed)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadRowError(f"{_name(path)}:{reader.line_num + 1}: not CSV in UTF-8: {error}.") from error
        finally:
            text.detach()


def from_json(source: str, columns: Sequence[Column], ignored: Iterable[str]) -> Iterator[Row]:
    """Reads rows from JSON: an object, a list of objects, one object per line, or `{"instances": […]}`.

    Args:
        source: The JSON itself, a file, or `-` for standard input.
        columns: The signature's columns.
        ignored: Keys that rows may have and that are not sent.

    Raises:
        DataError: It is not JSON, or keys do not fit.
        BadRowError: A value does not fit; the message names row or line, and key.
    """
    for where, row in _json_rows(source):
        if not isinstance(row, Mapping):
            if len(columns) != 1:
                raise BadRowError(f"{where}: received {row!r:.80}, expected an object with {_names(columns)}.")
            row = {columns[0].name: row}
        placed = place(columns, row, ignored, where)
        yield {column.name: _json_value(where, name, column, row[name]) for name, column in placed.items()}


def from_tfrecord(path: str) -> Iterator[bytes]:
    """Reads the records of a TFRecord file, plain or gzip: serialized tf.Examples.

    Args:
        path: The file, or `-` for standard input.

    Raises:
        BadRowError: The file ends within a record, or a checksum is wrong.
    """
    with _opened(path) as raw:
        buffered = io.BufferedReader(raw) if not isinstance(raw, io.BufferedReader) else raw  # type: ignore[type-var]
        zipped = buffered.peek(2)[:2] == GZIP_MAGIC
        file: Any = gzip.GzipFile(fileobj=buffered) if zipped else buffered
        number = 0
        try:
            while head := file.read(LENGTH.size + CRC_BYTES):
                number += 1
                yield _record(f"{_name(path)}, record {number}", head, file)
        except (EOFError, gzip.BadGzipFile) as error:
            raise BadRowError(f"{_name(path)}, record {number + 1}: not whole gzip: {error}.") from error


def _record(where: str, head: bytes, file: Any) -> bytes:
    # Imported here because only TFRecords need it.
    import google_crc32c

    def check(data: bytes, stored: bytes) -> None:
        crc = google_crc32c.value(data)
        # TFRecord stores masked checksums (tensorflow/core/lib/hash/crc32c.h).
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        if stored != struct.pack("<I", masked):
            raise BadRowError(f"{where}: received a wrong or incomplete checksum, expected a whole TFRecord.")

    check(head[: LENGTH.size], head[LENGTH.size :])
    length = LENGTH.unpack(head[: LENGTH.size])[0]
    data = file.read(length)
    check(data, file.read(CRC_BYTES))
    return bytes(data)


def _csv_row(where: str, header: Sequence[str], cells: Sequence[str], placed: Mapping[str, Column]) -> Row:
    if len(cells) != len(header):
        raise BadRowError(f"{where}: received {len(cells)} cells, expected {len(header)} as in the header.")
    row = {}
    for name, cell in zip(header, cells, strict=True):
        if (column := placed.get(name)) is not None:
            try:
                row[column.name] = column.from_cell(cell)
            except ValueError as error:
                raise bad_value(where, name, cell, error) from None
    return row


def _json_rows(source: str) -> Iterator[tuple[str, Any]]:
    inline = source.lstrip()[:1] in {"{", "["}
    name = "the JSON given" if inline else _name(source)
    text = source if inline else _text(source)
    try:
        document = json.loads(text)
    except ValueError as error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
        if len(lines) < 2:
            raise DataError(f"{name} is not JSON: {error}.") from error
        for number, line in lines:
            try:
                yield f"{name}:{number}", json.loads(line)
            except ValueError as fault:
                raise BadRowError(f"{name}:{number}: not JSON: {fault}.") from fault
        return
    if isinstance(document, dict) and isinstance(document.get("instances"), list):
        document = document["instances"]
    rows = document if isinstance(document, list) else [document]
    for number, row in enumerate(rows, start=1):
        yield f"{name}, row {number}", row


def _json_value(where: str, name: str, column: Column, value: Any) -> Any:
    try:
        return column.from_json(value)
    except ValueError as error:
        raise bad_value(where, name, value, error) from None


def _text(path: str) -> str:
    with _opened(path) as file:
        try:
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{_name(path)} is not UTF-8: {error}.") from error


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    with file:
        yield file


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)
