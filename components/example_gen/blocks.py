"""Text files in blocks that end where a record ends.

A line break inside quotes is part of a cell. A position is inside quotes if the number of quote characters before it is
odd. So blocks and byte ranges are cut by counting, which runs at memory speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from isal import igzip

from components.example_gen.contract import SHARD_BYTES, Piece

BLOCK_BYTES = 4 << 20
# A longer record is the work of a stray quote; reading on to its end would let memory grow with the file.
LONGEST_RECORD_BYTES = 64 << 20

_QUOTE, _NEWLINE = b'"', b"\n"


@dataclass(frozen=True)
class Block:
    """Whole records, end to end, and the number (from 1) of their first line."""

    data: bytes
    first_line: int


def open_text(file: str) -> BinaryIO:
    """Opens a text file, decompressing it if its name ends in `.gz`."""
    return cast(BinaryIO, igzip.open(file, "rb")) if file.endswith(".gz") else open(file, "rb")


def read_blocks(piece: Piece, quoting: bool) -> Iterator[Block]:
    """Yields a piece in blocks of about BLOCK_BYTES.

    Args:
        piece: What to read; it begins and ends at a record boundary.
        quoting: Whether a line break inside double quotes is part of a record.
    """
    bytes_left = float("inf") if piece.end is None else piece.end - piece.start
    line_number, remainder = piece.first_line, b""
    with open_text(piece.file) as file:
        file.seek(piece.start)
        while bytes_left > 0 and (data := file.read(int(min(bytes_left, BLOCK_BYTES)))):
            bytes_left -= len(data)
            data = remainder + data
            cut = record_end(data, quoting)
            if not cut and len(data) >= LONGEST_RECORD_BYTES:
                cut = data.rfind(_NEWLINE) + 1 or len(data)
            block, remainder = data[:cut], data[cut:]
            if block:
                yield Block(block, line_number)
                line_number += block.count(_NEWLINE)
    if remainder:
        yield Block(remainder, line_number)


def record_end(data: bytes, quoting: bool) -> int:
    """Returns the position after the last whole record in `data`, or 0; `data` begins at a record boundary."""
    cut = data.rfind(_NEWLINE) + 1
    if not quoting:
        return cut
    quotes = data.count(_QUOTE, 0, cut)
    while cut and quotes % 2:
        earlier = data.rfind(_NEWLINE, 0, cut - 1) + 1
        quotes -= data.count(_QUOTE, earlier, cut)
        cut = earlier
    return cut


def cut_file(piece: Piece, quoting: bool) -> list[Piece]:
    """Cuts a plain text file into pieces of about SHARD_BYTES that begin and end at record boundaries."""
    if piece.size <= SHARD_BYTES or piece.file.endswith(".gz"):
        return [piece]
    pieces: list[Piece] = []
    start, first_line, position, line_number = piece.start, piece.first_line, piece.start, piece.first_line
    for block in read_blocks(piece, quoting):
        position += len(block.data)
        line_number += block.data.count(_NEWLINE)
        if position - start >= SHARD_BYTES:
            pieces.append(Piece(piece.file, start, position, position - start, first_line))
            start, first_line = position, line_number
    if position > start:
        pieces.append(Piece(piece.file, start, position, position - start, first_line))
    return pieces
