"""scikit-learn's handwritten digits: 8x8 pixels from 0 to 16 and the digit, as CSV without a header."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping

import numpy as np

from components.errors import DataError
from components.example_gen.blocks import Block, read_blocks
from components.example_gen.files import InputFiles
from components.example_gen.image_rows import COLUMNS, ImageRow, to_batches
from components.example_gen.kinds import Kind
from components.example_gen.sources import Batch, Piece, RejectedRow

_SIDE = 8
_BRIGHTEST = 16
_CLASSES = tuple(map(str, range(10)))
_EXPECTED = f"{_SIDE * _SIDE} pixels from 0 to {_BRIGHTEST} and a digit, divided by commas"


class DigitsSource:
    """`digits.csv.gz` as grayscale PNGs of 8x8 pixels, 16 becoming 255; see `sources.Source`."""

    def peek_columns(self, file: str) -> list[str]:
        return list(COLUMNS)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        pieces = [Piece(str(f), 0, None, os.path.getsize(f), 1, classes=_CLASSES) for f in inputs.files]
        for piece in pieces:
            if next(read_blocks(piece, quoting=False), None) is None:
                raise DataError(f"{piece.file} is empty, expected rows of {_EXPECTED}.", "Check data.path.")
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return COLUMNS

    def read(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        rows = (row for block in read_blocks(piece, quoting=False) for row in _rows(piece.file, block))
        yield from to_batches(rows, piece.classes)


def _rows(file: str, block: Block) -> Iterator[ImageRow | RejectedRow]:
    from components.example_gen.image_codec import encode_png

    for line, raw in enumerate(io.BytesIO(block.data), block.first_line):
        values = _parse(raw)
        if values is None:
            yield RejectedRow(file, line, None, f"found no digit, expected {_EXPECTED}", raw)
            continue
        # Rounded half up: 16 -> 255, 8 -> 128.
        pixels = (values[:-1] * 255 + _BRIGHTEST // 2) // _BRIGHTEST
        image = encode_png(pixels.astype(np.uint8).reshape(_SIDE, _SIDE))
        yield ImageRow(image, int(values[-1]), f"{os.path.basename(file)}:{line}")


def _parse(raw: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Returns the (65,) pixels and digit of a line, or None if it is malformed."""
    try:
        values = np.array([int(cell) for cell in raw.split(b",")], np.int64)
    except (ValueError, OverflowError):
        return None
    limits = np.array([_BRIGHTEST] * (_SIDE * _SIDE) + [9])
    return values if values.shape == limits.shape and ((values >= 0) & (values <= limits)).all() else None
