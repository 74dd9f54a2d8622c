"""Text files in blocks that end where a record ends.

A line break inside quotes is part of a cell. Where every quote opens a cell, closes one or is doubled inside one, a
position is inside quotes if the number of quote characters before it is odd. So blocks and byte ranges are cut by
counting, which runs at memory speed; where a quote is just a character, as in `5" pipe`, Python's csv module cuts.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

from components.example_gen.contract import SHARD_BYTES, Piece
from components.example_gen.csv_records import quotes_are_regular, whole_lines
from components.example_gen.text_files import is_plain, open_text

BLOCK_BYTES = 4 << 20
# A longer record is the work of a stray quote; reading on to its end would let memory grow with the file.
LONGEST_RECORD_BYTES = 64 << 20

_QUOTE, _NEWLINE = b'"', b"\n"


@dataclass(frozen=True)
class Block:
    """Whole records, end to end.

    Attributes:
        data: Their bytes.
        first_line: The number (from 1) of their first line.
        regular: Whether its quotes are known to open a cell, close one or be doubled inside one.
    """

    data: bytes
    first_line: int
    regular: bool = False


def read_blocks(piece: Piece, delimiter: str | None) -> Iterator[Block]:
    """Yields a piece in blocks of about BLOCK_BYTES.

    Args:
        piece: What to read; it begins and ends at a record boundary.
        delimiter: Of CSV, where a line break inside double quotes is part of a record; None if every line is one.

    Raises:
        DataError: The file cannot be read.
    """
    bytes_left = float("inf") if piece.end is None else piece.end - piece.start
    line_number, remainder = piece.first_line, b""
    with open_text(piece.file, piece.encoding) as file:
        file.seek(piece.start)
        while bytes_left > 0 and (data := file.read(int(min(bytes_left, BLOCK_BYTES)))):
            bytes_left -= len(data)
            data = remainder + data
            cut, regular = record_end(data, delimiter)
            if not cut and len(data) >= LONGEST_RECORD_BYTES:
                cut, regular = data.rfind(_NEWLINE) + 1 or len(data), False
            block, remainder = data[:cut], data[cut:]
            if block:
                yield Block(block, line_number, regular)
                line_number += block.count(_NEWLINE)
    if remainder:
        yield Block(remainder, line_number)


def record_end(data: bytes, delimiter: str | None) -> tuple[int, bool]:
    """Returns the position after the last whole record in `data`, or 0, and whether the quotes before it are regular.

    `data` begins at a record boundary.
    """
    cut = last_line = data.rfind(_NEWLINE) + 1
    quotes = 0 if delimiter is None else data.count(_QUOTE, 0, cut)
    if delimiter is None or not quotes:
        return cut, True
    while cut and quotes % 2:
        earlier = data.rfind(_NEWLINE, 0, cut - 1) + 1
        quotes -= data.count(_QUOTE, earlier, cut)
        cut = earlier
    if not quotes_are_regular(data[:cut], delimiter):
        return _last_record_end(data[:last_line], delimiter), False
    if cut == last_line:
        return cut, True
    more = _last_record_end(data[cut:last_line], delimiter)
    return cut + more, not more


def _last_record_end(data: bytes, delimiter: str) -> int:
    lines = io.BytesIO(data).readlines()
    return sum(map(len, lines[: whole_lines(lines, delimiter)]))


def cut_file(piece: Piece, delimiter: str | None) -> list[Piece]:
    """Cuts a plain text file into pieces of about SHARD_BYTES that begin and end at record boundaries."""
    if piece.size <= SHARD_BYTES or not is_plain(piece.file, piece.encoding):
        return [piece]
    pieces: list[Piece] = []
    start, first_line, position, line_number = piece.start, piece.first_line, piece.start, piece.first_line
    for block in read_blocks(piece, delimiter):
        position += len(block.data)
        line_number += block.data.count(_NEWLINE)
        if position - start >= SHARD_BYTES:
            pieces.append(replace(piece, start=start, end=position, size=position - start, first_line=first_line))
            start, first_line = position, line_number
    if position > start:
        pieces.append(replace(piece, start=start, end=position, size=position - start, first_line=first_line))
    return pieces
