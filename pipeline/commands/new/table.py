"""The user's rows, read as ingest will read them, and the split that each will be in."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from components.example_gen.checks import RowChecks
from components.example_gen.contract import Batch, Source, assign_splits, merge_kinds
from components.example_gen.encoding import Column, encode_examples, encode_feature
from components.example_gen.files import InputFiles, resolve
from components.example_gen.hashing import binary_values, hash_buckets
from components.example_gen.kinds import Kind
from components.example_gen.settings import DataSettings
from components.example_gen.sources import source_of
from components.example_gen.text_files import open_text
from components.example_gen.time_split import TimeSplit
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow
from pipeline.commands.new.images import image_cells, splits_of_folders

MAX_ROWS = 200_000
"""Rows that are looked at; those after them are not."""

HEAD_BYTES = 1 << 20
DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "cp1252", "latin-1")
"""Tried in this order; every file is latin-1."""

TABLES = ("csv", "jsonl", "parquet", "tfrecord")
"""The formats that hold tables."""

Cells: TypeAlias = npt.NDArray[np.object_]
"""(rows,) text, int, float, a list of these, or None where a value is missing."""


@dataclass(frozen=True)
class Table:
    """Rows by column.

    Attributes:
        columns: Their cells, in the order of the data.
        in_training: (rows,) whether ingest puts the row into the training split.
        is_whole: Whether these are all rows.
        unread: Rows whose image cannot be read; these are not among the others.
    """

    columns: dict[str, Cells]
    in_training: npt.NDArray[np.bool_]
    is_whole: bool
    unread: Sequence[RejectedRow] = ()

    @property
    def rows(self) -> int:
        """Their number."""
        return len(self.in_training)


def sniff(path: str, base: Path) -> dict[str, Any]:
    """How to read the files of a path: `data.delimiter`, `data.encoding` and `data.header`, where not the default.

    Raises:
        MillraceError: There is no such file, or it holds no table.
    """
    inputs = resolve(DataSettings(path=path), base)
    if inputs.format == "images":
        return splits_of_folders([inputs.name_of(file) for file in inputs.files])
    if inputs.format not in TABLES:
        raise DataError(
            f"{path} holds {inputs.format}, expected a table ({', '.join(TABLES)}), or a folder of images for each "
            "class.",
            "For the digits and CIFAR-10, see recipes/cifar10.",
        )
    if inputs.format != "csv":
        return {}
    with open_text(str(inputs.files[0])) as file:
        head = file.read(HEAD_BYTES)
    found: dict[str, Any] = {}
    # Marked UTF-16 arrives as UTF-8.
    encoding = next(name for name in ENCODINGS if _reads(head, name))
    if encoding != "utf-8":
        found["encoding"] = encoding
    lines = head.decode(encoding, "ignore").lstrip("\ufeff").splitlines()
    lines = [line for line in lines[: max(1, len(lines) - 1)] if line.strip()][:1000]
    if not lines:
        raise DataError(f"{inputs.files[0]} is empty, expected a header and rows.", "Check DATA.")
    delimiter = max(DELIMITERS, key=lambda mark: _regularity(lines, mark))
    if delimiter != DataSettings(path=path).delimiter_of(str(inputs.files[0])):
        found["delimiter"] = "tab" if delimiter == "\t" else delimiter
    if not _has_header(lines, delimiter):
        found["header"] = False
    return found


def _reads(head: bytes, encoding: str) -> bool:
    try:
        head.decode(encoding)
    except UnicodeDecodeError as error:
        # The head may end within a character.
        return encoding == "utf-8" and len(head) == HEAD_BYTES and error.start > len(head) - 4
    return True


def _regularity(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How many lines have the most common number of cells, and that number; nothing if it is 1."""
    cells, times = Counter(map(len, csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))).most_common(1)[0]
    return (times / len(lines), cells) if cells > 1 else (0.0, 1)


def _has_header(lines: list[str], delimiter: str) -> bool:
    """Whether the first line has names: no number, and each its own, or else above columns of numbers."""
    first, *rest = csv.reader(io.StringIO("\n".join(lines[:50])), delimiter=delimiter)
    if not rest:
        return True
    if any(is_number(cell) for cell in first):
        return False
    above_numbers = any(all(is_number(cell) for cell in cells if cell) for cells in zip(*rest, strict=False))
    return above_numbers or len(set(first)) == len(first)


def is_number(text: str) -> bool:
    """Whether Python's `float` reads a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(settings: DataSettings, base: Path, as_text: bool = False) -> Table:
    """Reads the first `MAX_ROWS` rows.

    Args:
        settings: The `data` section.
        base: What relative paths begin at.
        as_text: Whether to leave the cells of CSV files as they are written.

    Raises:
        MillraceError: The files cannot be read as the settings say.
    """
    inputs = resolve(settings, base)
    source = source_of(inputs.format, inputs.reading)
    images = ["image"] if inputs.format == "images" else settings.image_columns
    checks = RowChecks(settings.model_copy(update={"on_bad_row": "set_aside"}), ())
    unread: list[RejectedRow] = []
    kinds = merge_kinds([source.infer(piece, True) for piece in assign_splits(source.pieces(inputs), inputs)])
    if as_text and inputs.format == "csv":
        kinds = dict.fromkeys(kinds, Kind.BYTES)
    cells: dict[str, list[Cells]] = {name: [] for name in kinds}
    in_training: list[npt.NDArray[np.bool_]] = []
    rows = 0
    for batch, split in _batches(source, inputs, kinds):
        if batch.rejected and not images:
            raise batch.rejected[0].as_error()
        if images:
            batch = checks.check(batch, str(inputs.files[0]))
            unread += batch.rejected
        present = {column.name: column for column in batch.columns}
        for name, parts in cells.items():
            if name in images and name in present:
                parts.append(image_cells(present[name]))
            else:
                parts.append(_cells(present[name]) if name in present else np.full(batch.num_rows, None))
        in_training.append(_in_training(batch, split, settings))
        rows += batch.num_rows
        if rows >= MAX_ROWS:
            break
    if not rows:
        raise unread[0].as_error()
    whole = {name: np.concatenate(parts)[:MAX_ROWS] for name, parts in cells.items()}
    return Table(whole, np.concatenate(in_training)[:MAX_ROWS], rows <= MAX_ROWS, unread)


def _batches(source: Source, inputs: InputFiles, kinds: Mapping[str, Kind]) -> Iterator[tuple[Batch, str | None]]:
    for piece in assign_splits(source.pieces(inputs), inputs):
        for batch in source.read_batches(piece, kinds):
            if batch.num_rows or batch.rejected:
                yield batch, piece.split


def _cells(column: Column) -> Cells:
    rows = len(column.offsets) - 1
    cells = np.full(rows, None)
    if column.values is None:
        return cells
    values = column.values.to_pylist()
    if column.kind is Kind.BYTES:
        values = [value.decode("utf-8", "replace") for value in values]
    for row, (start, end) in enumerate(zip(column.offsets[:-1], column.offsets[1:], strict=True)):
        if end > start:
            cells[row] = values[start] if end - start == 1 else values[start:end]
    return cells


def _in_training(batch: Batch, split: str | None, settings: DataSettings) -> npt.NDArray[np.bool_]:
    """Which rows ingest puts into the split `train`."""
    if split is not None or not batch.num_rows:
        return np.full(batch.num_rows, split == "train")
    if settings.split_by_time:
        old: npt.NDArray[np.bool_] = TimeSplit(settings.split_by_time).places(batch) == 0
        return old
    keys = [encode_feature(column) for column in batch.columns if column.name == settings.split_by]
    hashed = keys[0] if keys else encode_examples(batch.columns, batch.num_rows)
    bounds = np.cumsum(list(settings.buckets.values()))
    places = np.searchsorted(bounds, hash_buckets(binary_values(hashed), int(bounds[-1])), side="right")
    inside: npt.NDArray[np.bool_] = places == list(settings.buckets).index("train")
    return inside
