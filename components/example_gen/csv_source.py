"""CSV, plain or gzip, as arrow columns; where arrow cannot be trusted, Python's csv module reads row by row."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain

import pyarrow as pa
import pyarrow.csv as pa_csv

from components.example_gen.blocks import BLOCK_BYTES, Block, cut_file, read_blocks
from components.example_gen.contract import Batch, Piece, Place
from components.example_gen.conversion import Conversion
from components.example_gen.csv_records import Row, parse_cells, quotes_are_regular, read_rows, records
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind
from components.example_gen.reading import ReadingSettings
from components.example_gen.text_files import open_text
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

_BOM = b"\xef\xbb\xbf"
_LONGEST_NAME = 80
_OTHER_DELIMITERS = {";": ";", "\t": "tab", "|": "|", ",": ","}


class CsvSource:
    """CSV, with a header line or without; see `contract.Source`.

    Arrow reads block by block. A block that arrow might read differently from Python's csv module (irregular quotes,
    lone carriage returns) or not at all (malformed rows) goes to `read_rows`.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._reading = reading
        self._conversion = Conversion(reading)

    def peek_columns(self, file: str) -> list[str]:
        return self._header(file)[0]

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        files = [str(file) for file in inputs.files]
        names, _ = self._header(files[0])
        pieces: list[Piece] = []
        rows = False
        for file in files:
            columns, header = self._header(file)
            if columns != names:
                raise DataError(_different_headers(files[0], names, file, columns), "Give all files the same columns.")
            size, first_line = os.path.getsize(file), 1 + header.count(b"\n")
            piece = Piece(file, len(header), None, size, first_line, encoding=self._reading.encoding)
            rows = rows or next(read_blocks(piece, None), None) is not None
            pieces += cut_file(piece, self._reading.delimiter_of(file))
        if not rows:
            raise DataError(f"{files[0]} has a header and no rows, expected at least one row.", "Check data.path.")
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        names = self.peek_columns(piece.file)
        kinds = {name: self._conversion.declared_kind(name) or Kind.EMPTY for name in names}
        inferred = [name for name in names if self._conversion.declared_kind(name) is None]
        for block in read_blocks(piece, self._reading.delimiter_of(piece.file)):
            # The kind of a text column can no longer change, so arrow need not even convert it.
            undecided = [name for name in inferred if kinds[name] is not Kind.BYTES]
            table, rejected, _ = self._cells(piece.file, block, names, undecided)
            if rejected and fail:
                raise rejected[0].as_error()
            for name, cells in zip(undecided, table.columns, strict=True):
                kinds[name] = self._conversion.infer(cells, kinds[name])
        return kinds

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        names = self.peek_columns(piece.file)
        for block in read_blocks(piece, self._reading.delimiter_of(piece.file)):
            table, rejected, place = self._cells(piece.file, block, names, names)
            cells = zip(names, table.columns, strict=True)
            columns = [self._conversion.column(name, kinds[name], column) for name, column in cells]
            yield Batch(columns, table.num_rows, rejected, place)

    def _header(self, file: str) -> tuple[list[str], bytes]:
        """Returns the column names, and the bytes before the first row: a byte order mark, blank lines, the header."""
        delimiter = self._reading.delimiter_of(file)
        with open_text(file, self._reading.encoding) as opened:
            start, cells = _first_record(iter(lambda: opened.read(1 << 16), b""), delimiter)
        try:
            names = parse_cells(cells.decode("utf-8").rstrip("\r\n"), delimiter)
        except (UnicodeDecodeError, csv.Error) as error:
            fix = "Save the file as UTF-8 CSV, or set data.encoding to the encoding that it is in."
            raise DataError(f"{file}: the header cannot be read: {error}.", fix) from error
        if not names:
            raise DataError(f"{file} is empty, expected a header and rows.", "Check data.path, or how it is written.")
        if self._reading.header is not True:
            given = self._reading.header
            return given or [f"column_{number}" for number in range(1, len(names) + 1)], start
        if double := [name for name, times in Counter(names).items() if times > 1]:
            raise DataError(
                f"{file}: the header names {double[0]!r} more than once.",
                "Give every column its own name; or if there is no header, list the names in data.header.",
            )
        self._check_delimiter(file, names)
        return names, start + cells

    def _check_delimiter(self, file: str, names: list[str]) -> None:
        others = [
            other for other in _OTHER_DELIMITERS if other in names[0] and other != self._reading.delimiter_of(file)
        ]
        if len(names) == 1 and others and self._reading.delimiter is None:
            likely = max(others, key=names[0].count)
            shown = names[0] if len(names[0]) <= _LONGEST_NAME else f"{names[0][:_LONGEST_NAME]}…"
            raise DataError(
                f"{file} has 1 column, {shown!r}: is the delimiter {_OTHER_DELIMITERS[likely]!r}?",
                f"Set data.delimiter: {_OTHER_DELIMITERS[likely]!r}; or ',' if there is only that column.",
            )

    def _cells(
        self, file: str, block: Block, names: list[str], columns: list[str]
    ) -> tuple[pa.RecordBatch, list[RejectedRow], Callable[[int], Place]]:
        """Returns the given columns of a block, (rows,) text with null for a missing value, the malformed rows, and
        where each row is.
        """
        delimiter = self._reading.delimiter_of(file)

        @cache
        def rows_and_rejected() -> tuple[list[Row], list[RejectedRow]]:
            return read_rows(file, block.data, block.first_line, names, delimiter)

        def place(position: int) -> Place:
            row = rows_and_rejected()[0][position]
            return row.line, row.raw

        table = self._by_arrow(block, names, columns, delimiter)
        rejected: list[RejectedRow] = []
        if table is None:
            rows, rejected = rows_and_rejected()
            chosen = [names.index(name) for name in columns]
            arrays = [pa.array([row.cells[i] or None for row in rows], pa.string()) for i in chosen]
            table = pa.RecordBatch.from_arrays(arrays, columns)
        present = [self._conversion.without_missing(column) for column in table.columns]
        return pa.RecordBatch.from_arrays(present, columns), rejected, place

    def _by_arrow(self, block: Block, names: list[str], columns: list[str], delimiter: str) -> pa.RecordBatch | None:
        """Returns the columns as arrow reads them; None if the csv module may read them differently, or must."""
        data = block.data
        if not _is_regular(block, delimiter):
            return None
        reading = pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False)
        parsing = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data)
        converting = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns or names[:1],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            check_utf8=False,  # _is_regular has checked all columns.
        )
        try:
            # Not read_csv: on Python 3.10 its handling of Ctrl-C walks every object of the process, 50 ms a call.
            with pa_csv.open_csv(pa.BufferReader(data), reading, parsing, converting) as reader:
                table = reader.read_all()
        except pa.ArrowInvalid:
            return None  # Rows with too few or too many cells.
        return pa.RecordBatch.from_arrays([table[name].combine_chunks() for name in columns], columns)


def _first_record(chunks: Iterator[bytes], delimiter: str) -> tuple[bytes, bytes]:
    """Returns what is before the first record, a byte order mark and blank lines, and its bytes."""
    data = b""
    for chunk in chain(chunks, [b""]):
        data += chunk
        text = data.removeprefix(_BOM)
        lines = io.BytesIO(text).readlines()
        ended = not chunk or len(data) > BLOCK_BYTES
        found = records(lines if ended else lines[:-1], delimiter)
        first = next((record for record in found if record.cells or record.error), None)
        if first is not None and (first.whole or ended):
            start = sum(map(len, lines[: first.start]))
            end = start + sum(map(len, lines[first.start : first.end]))
            mark = len(data) - len(text)
            return data[: mark + start], data[mark + start : mark + end]
        if ended:
            break
    return data, b""


def _is_regular(block: Block, delimiter: str) -> bool:
    """Whether arrow and Python's csv module are sure to split a block into the same cells."""
    data = block.data
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return False
    if b"\0" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return False
    if not data.strip(b"\r\n"):  # Arrow takes nothing but blank lines for an empty file.
        return False
    return block.regular or b'"' not in data or quotes_are_regular(data, delimiter)


def _different_headers(first: str, names: list[str], file: str, columns: list[str]) -> str:
    missing, extra = [n for n in names if n not in columns], [n for n in columns if n not in names]
    differences = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
    differences += [f"adds {', '.join(map(repr, extra))}"] if extra else []
    difference = " and ".join(differences) or "orders the columns differently"
    return f"{file} has a different header from {first}: it {difference}."
