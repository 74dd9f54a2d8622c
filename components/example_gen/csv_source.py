"""CSV, plain or gzip, as arrow columns; where arrow cannot be trusted, Python's csv module reads row by row."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from components.example_gen.blocks import BLOCK_BYTES, Block, cut_file, open_text, read_blocks
from components.example_gen.contract import Batch, Piece
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.kinds import Kind, infer_kind, to_values
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

Cells = list[str]


def read_rows(file: str, block: Block, names: list[str], delimiter: str) -> tuple[list[Cells], list[RejectedRow]]:
    """Reads a block row by row.

    Args:
        file: The file's name, for the messages.
        block: Whole records.
        names: The columns.
        delimiter: What separates two cells.

    Returns:
        The well-formed rows, each with as many cells as there are names, and the malformed ones.
    """
    lines = io.BytesIO(block.data).readlines()  # splitlines would also break at lone carriage returns.
    rows: list[Cells] = []
    rejected: list[RejectedRow] = []
    at = 0
    while at < len(lines):
        end, balanced = _record_end(lines, at)
        cells, column, reason = _parse_row(lines[at:end], names, delimiter, balanced)
        if reason and cells is None:
            # A stray quote swallows the lines after it: reject only its own line, and continue with the next.
            end = at + 1
        if reason:
            rejected.append(RejectedRow(file, block.first_line + at, column, reason, b"".join(lines[at:end])))
        elif cells:
            rows.append(cells)
        at = end
    return rows, rejected


def parse_cells(record: str, delimiter: str) -> Cells:
    """Returns the cells of one record. Raises csv.Error if it is malformed."""
    limit = csv.field_size_limit(sys.maxsize)  # Arrow has no limit, so the slow path must not have one either.
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


def _parse_row(
    lines: list[bytes], names: list[str], delimiter: str, balanced: bool
) -> tuple[Cells | None, str | None, str | None]:
    """Returns the cells (None if they cannot be determined) and, if the row is malformed, the column and the reason."""
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
    """Returns the column in which a text breaks off, or None if it cannot be determined."""
    try:
        index = len(parse_cells(before.rstrip("\r\n"), delimiter)) - 1
    except csv.Error:
        return None
    return names[max(index, 0)] if index < len(names) else None


_BOM = b"\xef\xbb\xbf"
_QUOTE = ord('"')


class CsvSource:
    """CSV with a header line; see `contract.Source`.

    Arrow reads block by block. A block that arrow might read differently from Python's csv module (irregular quotes,
    lone carriage returns) or not at all (malformed rows) goes to `read_rows`.
    """

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter

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
            piece = Piece(file, len(header), None, os.path.getsize(file), 1 + header.count(b"\n"))
            rows = rows or next(read_blocks(piece, quoting=False), None) is not None
            pieces += cut_file(piece, quoting=True)
        if not rows:
            raise DataError(f"{files[0]} has a header and no rows, expected at least one row.", "Check data.path.")
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        names = self.peek_columns(piece.file)
        kinds = dict.fromkeys(names, Kind.EMPTY)
        for block in read_blocks(piece, quoting=True):
            # The kind of a text column can no longer change, so arrow need not even convert it.
            undecided = [name for name in names if kinds[name] is not Kind.BYTES]
            table, rejected = self._cells(piece.file, block, names, undecided)
            if rejected and fail:
                raise rejected[0].as_error()
            for name, cells in zip(undecided, table.columns, strict=True):
                kinds[name] = infer_kind(cells, kinds[name])
        return kinds

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        names = self.peek_columns(piece.file)
        for block in read_blocks(piece, quoting=True):
            batch, rejected = self._cells(piece.file, block, names, names)
            columns = [_typed(name, cells, kinds[name]) for name, cells in zip(names, batch.columns, strict=True)]
            yield Batch(columns, batch.num_rows, rejected)

    def _header(self, file: str) -> tuple[list[str], bytes]:
        """Returns the column names and the bytes of the header, including a byte order mark."""
        data = b""
        with open_text(file) as opened:
            while not _first_record(data) and (more := opened.read(1 << 16)) and len(data) < BLOCK_BYTES:
                data += more
        header = _first_record(data) or data
        try:
            names = parse_cells(header.removeprefix(_BOM).decode("utf-8").rstrip("\r\n"), self._delimiter)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{file}: the header cannot be read: {error}.", "Save the file as UTF-8 CSV.") from error
        if not names:
            raise DataError(f"{file} is empty, expected a header and rows.", "Check data.path, or how it is written.")
        if double := [name for name, times in Counter(names).items() if times > 1]:
            raise DataError(
                f"{file}: the header names {double[0]!r} more than once.", "Give every column its own name."
            )
        return names, header

    def _cells(
        self, file: str, block: Block, names: list[str], columns: list[str]
    ) -> tuple[pa.RecordBatch, list[RejectedRow]]:
        """Returns the given columns of a block, (rows,) strings with null for an empty cell, and the malformed rows."""
        if _is_regular(block.data, self._delimiter):
            try:
                return self._by_arrow(block.data, names, columns), []
            except pa.ArrowInvalid:
                pass  # Rows with too few or too many cells.
        rows, rejected = read_rows(file, block, names, self._delimiter)
        chosen = [names.index(name) for name in columns]
        arrays = [pa.array([row[i] or None for row in rows], pa.string()) for i in chosen]
        return pa.RecordBatch.from_arrays(arrays, columns), rejected

    def _by_arrow(self, data: bytes, names: list[str], columns: list[str]) -> pa.RecordBatch:
        reading = pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False)
        parsing = pa_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in data)
        converting = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns or names[:1],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            check_utf8=False,  # _is_regular has checked all columns.
        )
        # Not read_csv: on Python 3.10 its handling of Ctrl-C walks every object of the process, 50 ms a call.
        with pa_csv.open_csv(pa.BufferReader(data), reading, parsing, converting) as reader:
            table = reader.read_all()
        return pa.RecordBatch.from_arrays([table[name].combine_chunks() for name in columns], columns)


def _first_record(data: bytes) -> bytes:
    end = data.find(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end) + 1
    return data[:end]


def _is_regular(data: bytes, delimiter: str) -> bool:
    """Whether arrow and Python's csv module are sure to split `data` (whole records) into the same cells."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return False
    if b"\0" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return False
    if not data.strip(b"\r\n"):  # Arrow takes nothing but blank lines for an empty file.
        return False
    return b'"' not in data or _quotes_are_regular(data, ord(delimiter))


def _quotes_are_regular(data: bytes, delimiter: int) -> bool:
    """Whether every quote opens a cell, closes one or is doubled inside one."""
    array = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(array == _QUOTE)
    if len(at) % 2:
        return False
    border = np.zeros(256, bool)
    border[[delimiter, ord("\n"), ord("\r"), _QUOTE]] = True
    opening, closing = at[::2], at[1::2]
    before, after = opening[opening > 0] - 1, closing[closing < len(array) - 1] + 1
    return bool(border[array[before]].all() and border[array[after]].all())


def _typed(name: str, cells: pa.Array, kind: Kind) -> Column:
    if not cells.null_count:
        offsets = np.arange(len(cells) + 1, dtype=np.int64)
        return Column(name, kind, None if kind is Kind.EMPTY else to_values(cells, kind), offsets)
    present = cells.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(present, dtype=np.int64)))
    return Column(name, kind, None if kind is Kind.EMPTY else to_values(cells.drop_null(), kind), offsets)


def _different_headers(first: str, names: list[str], file: str, columns: list[str]) -> str:
    missing, extra = [n for n in names if n not in columns], [n for n in columns if n not in names]
    differences = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
    differences += [f"adds {', '.join(map(repr, extra))}"] if extra else []
    difference = " and ".join(differences) or "orders the columns differently"
    return f"{file} has a different header from {first}: it {difference}."
