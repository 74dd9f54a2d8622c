"""CSV by Python's csv module, row by row: exact about what is wrong with a row, and slow.

Only blocks that arrow cannot be trusted with come here: those with malformed rows, invalid UTF-8, quotes inside
unquoted cells, or stray carriage returns. The rules are those of TFX's CsvExampleGen: a record ends at the first line
break after an even number of quotes, and csv's default dialect reads it.
"""

from __future__ import annotations

import csv
import io
import sys

from components.example_gen.blocks import Block
from components.example_gen.sources import RejectedRow

Cells = list[str]


def read_rows(file: str, block: Block, names: list[str], delimiter: str) -> tuple[list[Cells], list[RejectedRow]]:
    """Reads a block.

    Args:
        file: For the messages.
        block: Whole records.
        names: The columns.
        delimiter: Between two cells.

    Returns:
        The well-formed rows, each with as many cells as there are names, and the others.
    """
    lines = io.BytesIO(block.data).readlines()  # splitlines would also break at a lone carriage return.
    rows: list[Cells] = []
    rejected: list[RejectedRow] = []
    at = 0
    while at < len(lines):
        end, balanced = _record_end(lines, at)
        cells, column, reason = _parse(lines[at:end], names, delimiter, balanced)
        if reason and cells is None:
            # A stray quote swallows the lines behind it: give up its own line only, and go on with the next.
            end = at + 1
        if reason:
            rejected.append(RejectedRow(file, block.first_line + at, column, reason, b"".join(lines[at:end])))
        elif cells:
            rows.append(cells)
        at = end
    return rows, rejected


def parse_cells(record: str, delimiter: str) -> Cells:
    """Returns the cells of one record. Raises csv.Error where it is malformed."""
    limit = csv.field_size_limit(sys.maxsize)  # Arrow has no limit; the slow way must not have one either.
    try:
        return next(csv.reader([record], delimiter=delimiter), [])
    finally:
        csv.field_size_limit(limit)


def _record_end(lines: list[bytes], start: int) -> tuple[int, bool]:
    quotes = 0
    for end in range(start, len(lines)):
        quotes += lines[end].count(b'"')
        if quotes % 2 == 0:
            return end + 1, True
    return len(lines), False


def _parse(
    lines: list[bytes], names: list[str], delimiter: str, balanced: bool
) -> tuple[Cells | None, str | None, str | None]:
    """Returns the cells (None if they cannot be told), and where a row is malformed, the column and the reason."""
    raw = b"".join(lines)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        return [], _column_at(before, names, delimiter), f"found the byte 0x{raw[error.start]:02x}, expected UTF-8"
    if not balanced:
        first = lines[0].decode("utf-8")
        return None, _column_at(first, names, delimiter), "found a quote that never closes, expected its partner"
    try:
        cells = parse_cells(text, delimiter)
    except csv.Error as error:
        reason = f"found a row that is not CSV ({error}), expected cells divided by {delimiter!r}"
        return None, _column_at(text.splitlines()[0].partition("\0")[0], names, delimiter), reason
    if not cells or len(cells) == len(names):
        return cells, None, None
    column = names[len(cells)] if len(cells) < len(names) else None
    return cells, column, f"found {_count(len(cells))}, expected {len(names)} as in the header"


def _count(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def _column_at(before: str, names: list[str], delimiter: str) -> str | None:
    """Returns the column in which a text breaks off, as far as it can be told."""
    try:
        index = len(parse_cells(before.rstrip("\r\n"), delimiter)) - 1
    except csv.Error:
        return None
    return names[max(index, 0)] if index < len(names) else None
