"""Text files in blocks that end where a record ends.

A line break inside quotes is part of a cell. Whether a position is inside quotes follows from the number of quote
characters before it alone: odd is inside. So blocks and byte ranges are cut by counting, which runs at memory speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from isal import igzip

from components.example_gen.contract import SHARD_BYTES, Piece

BLOCK_BYTES = 4 << 20
# A record that is longer holds a stray quote rather than text; memory would grow with the file.
LONGEST_RECORD_BYTES = 64 << 20

_QUOTE, _NEWLINE = b'"', b"\n"


@dataclass(frozen=True)
class Block:
    """Whole records, end to end, and the number, from 1, of the line where they begin."""

    data: bytes
    first_line: int


def open_text(file: str) -> BinaryIO:
    """Opens a text file, decompressing it if its name ends in `.gz`."""
    return cast(BinaryIO, igzip.open(file, "rb")) if file.endswith(".gz") else open(file, "rb")


def read_blocks(piece: Piece, quoting: bool) -> Iterator[Block]:
    """Yields a piece in blocks of about BLOCK_BYTES.

    Args:
        piece: Begins and ends at the border of a record.
        quoting: Whether a line break inside double quotes is part of a record.
    """
    left = float("inf") if piece.end is None else piece.end - piece.start
    line, rest = piece.first_line, b""
    with open_text(piece.file) as file:
        file.seek(piece.start)
        while left > 0 and (data := file.read(int(min(left, BLOCK_BYTES)))):
            left -= len(data)
            data = rest + data
            cut = record_end(data, quoting)
            if not cut and len(data) >= LONGEST_RECORD_BYTES:
                cut = data.rfind(_NEWLINE) + 1 or len(data)
            block, rest = data[:cut], data[cut:]
            if block:
                yield Block(block, line)
                line += block.count(_NEWLINE)
    if rest:
        yield Block(rest, line)


def record_end(data: bytes, quoting: bool) -> int:
    """Returns the position behind the last whole record of `data`, which begins with one; 0 if there is none."""
    cut = data.rfind(_NEWLINE) + 1
    if not quoting:
        return cut
    quotes = data.count(_QUOTE, 0, cut)
    while cut and quotes % 2:
        earlier = data.rfind(_NEWLINE, 0, cut - 1) + 1
        quotes -= data.count(_QUOTE, earlier, cut)
        cut = earlier
    return cut


def cut_file(whole: Piece, quoting: bool) -> list[Piece]:
    """Cuts a plain text file into pieces of about SHARD_BYTES that begin and end at the border of a record."""
    if whole.size <= SHARD_BYTES or whole.file.endswith(".gz"):
        return [whole]
    pieces: list[Piece] = []
    start, first_line, position, line = whole.start, whole.first_line, whole.start, whole.first_line
    for block in read_blocks(whole, quoting):
        position += len(block.data)
        line += block.data.count(_NEWLINE)
        if position - start >= SHARD_BYTES:
            pieces.append(Piece(whole.file, start, position, position - start, first_line))
            start, first_line = position, line
    if position > start:
        pieces.append(Piece(whole.file, start, position, position - start, first_line))
    return pieces
