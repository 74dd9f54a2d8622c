"""CSV row by row, as Python's csv module reads it: for what arrow might read differently, or cannot read."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from contracts.rejected_rows import RejectedRow

Cells = list[str]

_QUOTE = ord('"')


class Record(NamedTuple):
    """A record of CSV.

    Attributes:
        start: The number (from 0) of its first line.
        end: One past its last line.
        cells: Empty for a blank line; bytes that are not UTF-8 are lone surrogates.
        error: Why the csv module refuses it, or None.
        whole: Whether it ends; a quote that never closes swallows all lines after it.
    """

    start: int
    end: int
    cells: Cells
    error: str | None = None
    whole: bool = True


def records(lines: Sequence[bytes], delimiter: str) -> list[Record]:
    """Divides lines into records.

    Where a record cannot be read, only its first line belongs to it, and the next line begins another: a stray quote
    costs its own line only.
    """
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter)
    found: list[Record] = []
    with _cells_of_any_size():
        while feed.at < len(lines):
            start = feed.at
            try:
                cells = next(reader)
            except csv.Error as error:
                record = Record(start, start + 1, [], str(error))
            else:
                record = Record(start, start + 1 if feed.ended else feed.at, cells, whole=not feed.ended)
            feed.at, feed.ended = record.end, False
            found.append(record)
    return found


def whole_lines(lines: Sequence[bytes], delimiter: str) -> int:
    """Returns how many of the lines belong to whole records."""
    feed, whole = _Feed(lines), 0
    try:
        with _cells_of_any_size():
            for _ in csv.reader(feed, delimiter=delimiter):
                if feed.ended:
                    break
                whole = feed.at
    except csv.Error:
        return next((record.start for record in records(lines, delimiter) if not record.whole), len(lines))
    return whole


class _Feed(Iterator[str]):
    """Lines for a csv.reader, which may be set back, and which notes that it was asked for more than there are."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines, self.at, self.ended = lines, 0, False

    def __next__(self) -> str:
        if self.at >= len(self._lines):
            self.ended = True
            raise StopIteration
        self.at += 1
        return self._lines[self.at - 1].decode("utf-8", "surrogateescape")


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    limit = csv.field_size_limit(sys.maxsize)  # Arrow has no limit, so the slow path must not have one either.
    try:
        yield
    finally:
        csv.field_size_limit(limit)


class Row(NamedTuple):
    """A well-formed row: its cells, the number (from 1) of its first line in the file, and its bytes."""

    cells: Cells
    line: int
    raw: bytes


def read_rows(
    file: str, data: bytes, first_line: int, names: list[str], delimiter: str
) -> tuple[list[Row], list[RejectedRow]]:
    """Reads whole records row by row.

    Args:
        file: The file's name, for the messages.
        data: The records, end to end.
        first_line: The number of their first line in the file.
        names: The columns.
        delimiter: What separates two cells.

    Returns:
        The well-formed rows, each with as many cells as there are names, and the malformed ones.
    """
    lines = io.BytesIO(data).readlines()  # splitlines would also break at lone carriage returns.
    rows: list[Row] = []
    rejected: list[RejectedRow] = []
    for record in records(lines, delimiter):
        raw, line = b"".join(lines[record.start : record.end]), first_line + record.start
        if fault := _fault(record, raw, names, delimiter):
            rejected.append(RejectedRow(file, line, fault[0], fault[1], raw))
        elif record.cells:
            rows.append(Row(record.cells, line, raw))
    return rows, rejected


def parse_cells(record: str, delimiter: str) -> Cells:
    """Returns the cells of one record. Raises csv.Error if it is malformed."""
    with _cells_of_any_size():
        return next(csv.reader([record], delimiter=delimiter), [])


def _fault(record: Record, raw: bytes, names: list[str], delimiter: str) -> tuple[str | None, str] | None:
    """Returns the column and the reason if a record is malformed."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        reason = f"found the byte 0x{raw[error.start]:02x}, expected UTF-8 or what data.encoding names"
        return _column_at(before, names, delimiter), reason
    if not record.whole:
        return _column_at(text, names, delimiter), "found a quote that never closes, expected its partner"
    # Newer versions of the csv module take it for text, which files that were cut off or are binary would pass for.
    if unread := "line contains NUL" if b"\0" in raw else record.error:
        reason = f"found a row that is not CSV ({unread}), expected cells divided by {delimiter!r}"
        return _column_at(text.partition("\0")[0], names, delimiter), reason
    cells = len(record.cells)
    if not cells or cells == len(names):
        return None
    return names[cells] if cells < len(
        names
    ) else None, f"found {_count(cells)}, expected {len(names)} as in the header"


def _count(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def _column_at(before: str, names: list[str], delimiter: str) -> str | None:
    """Returns the column in which a text breaks off, or None if it cannot be determined."""
    try:
        index = len(parse_cells(before.rstrip("\r\n"), delimiter)) - 1
    except csv.Error:
        return None
    return names[max(index, 0)] if index < len(names) else None


def quotes_are_regular(data: bytes, delimiter: str) -> bool:
    """Whether every quote opens a cell, closes one or is doubled inside one."""
    array = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(array == _QUOTE)
    if len(at) % 2:
        return False
    border = np.zeros(256, bool)
    border[[ord(delimiter), ord("\n"), ord("\r"), _QUOTE]] = True
    opening, closing = at[::2], at[1::2]
    before, after = opening[opening > 0] - 1, closing[closing < len(array) - 1] + 1
    return bool(border[array[before]].all() and border[array[after]].all())
