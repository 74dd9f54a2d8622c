"""Text, plain or gzip: each line that is not blank is a row with one column, `text`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from components.example_gen.blocks import cut_file, read_blocks
from components.example_gen.contract import Batch, Piece, Place
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

COLUMN = "text"


class TextSource:
    """Lines of text; see `contract.Source`.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._encoding = reading.encoding

    def peek_columns(self, file: str) -> list[str]:
        return [COLUMN]

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        pieces: list[Piece] = []
        for file in map(str, inputs.files):
            whole = Piece(file, 0, None, os.path.getsize(file), 1, encoding=self._encoding)
            if next(read_blocks(whole, None), None) is None:
                raise DataError(f"{file} is empty, expected lines of text.", "Check how the file is written.")
            pieces += cut_file(whole, None)
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return {COLUMN: Kind.BYTES}

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        for block in read_blocks(piece, None):
            lines: list[bytes] = []
            places: list[Place] = []
            rejected: list[RejectedRow] = []
            for number, raw in enumerate(io.BytesIO(block.data), block.first_line):
                try:
                    line = raw.decode("utf-8-sig").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    reason = f"found the byte 0x{raw[error.start]:02x}, expected UTF-8 or what data.encoding names"
                    rejected.append(RejectedRow(piece.file, number, COLUMN, reason, raw))
                    continue
                if line.strip():
                    lines.append(line.encode("utf-8"))
                    places.append((number, raw))
            offsets = np.arange(len(lines) + 1, dtype=np.int64)
            column = Column(COLUMN, Kind.BYTES, pa.array(lines, pa.binary()), offsets)
            yield Batch([column], len(lines), rejected, places.__getitem__)
