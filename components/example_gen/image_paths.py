"""Tables in which a column holds paths of image files: the cells become the files' bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from components.example_gen.contract import Batch, Piece, Source
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles
from components.example_gen.images_source import BATCH_BYTES, find_fault
from components.example_gen.kinds import Kind


class ImagePathsSource:
    """A table with columns of paths; see `contract.Source`.

    A path is relative to the folder of the file that names it. What cannot be read as an image is a malformed value.

    Args:
        table: Reads the table, with paths as text.
        columns: Those that hold paths.
    """

    def __init__(self, table: Source, columns: list[str]) -> None:
        self._table, self._columns = table, columns

    def peek_columns(self, file: str) -> list[str]:
        return self._table.peek_columns(file)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        return self._table.pieces(inputs)

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return self._table.infer(piece, fail)

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        folder = os.path.dirname(piece.file)
        for batch in self._table.read_batches(piece, kinds):
            for part in self._parts(batch, folder):
                yield replace(
                    part, columns=[self._read(c, folder) if c.name in self._columns else c for c in part.columns]
                )

    def _parts(self, batch: Batch, folder: str) -> Iterator[Batch]:
        """Cuts a batch, so that the images of each part are about BATCH_BYTES."""
        sizes = np.zeros(batch.num_rows)
        for column in batch.columns:
            if column.name in self._columns and column.values is not None:
                of_values = [_size(os.path.join(folder, path)) for path in _paths(column)]
                sizes += np.diff(np.concatenate(([0], np.cumsum(of_values)))[column.offsets])
        groups = (np.cumsum(sizes) // BATCH_BYTES).astype(np.int64)
        cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), batch.num_rows]
        for start, stop in pairwise(cuts):
            yield sliced(batch, start, stop)

    def _read(self, column: Column, folder: str) -> Column:
        if column.values is None:
            return column
        read = [_image(os.path.join(folder, path), path) for path in _paths(column)]
        values = pa.array([image if isinstance(image, bytes) else b"" for image in read], pa.binary())
        wrong = {at: image for at, image in enumerate(read) if isinstance(image, str)}
        return replace(column, values=values, wrong=wrong)


def sliced(batch: Batch, start: int, stop: int) -> Batch:
    """The rows of a batch from `start` to before `stop`; the first part has the rows that were rejected."""

    def part(column: Column) -> Column:
        first, last = int(column.offsets[start]), int(column.offsets[stop])
        values = None if column.values is None else column.values[first:last]
        offsets = column.offsets[start : stop + 1] - first
        wrong, too_large, padded = (
            {at - first: text for at, text in marks.items() if first <= at < last}
            for marks in (column.wrong, column.too_large, column.padded)
        )
        return Column(column.name, column.kind, values, offsets, wrong, too_large, padded)

    return Batch(
        [part(column) for column in batch.columns],
        stop - start,
        batch.rejected if start == 0 else [],
        lambda position: batch.place(start + position),
    )


def named_files(table: Source, columns: list[str], inputs: InputFiles) -> tuple[Path, ...]:
    """The image files that a table names and that exist, each once, sorted.

    Args:
        table: Reads the table, with paths as text.
        columns: Those that hold paths.
        inputs: The table's files.
    """
    found: set[str] = set()
    for piece in table.pieces(inputs):
        kinds = table.infer(piece, False)
        for batch in table.read_batches(piece, kinds):
            for column in batch.columns:
                if column.name in columns and column.values is not None:
                    found.update(os.path.join(os.path.dirname(piece.file), path) for path in _paths(column))
    return tuple(sorted(Path(path) for path in found if os.path.isfile(path)))


def _paths(column: Column) -> list[str]:
    """Its values as paths; the system's file names are bytes."""
    return [os.fsdecode(value).strip() for value in column.values.to_pylist()]  # type: ignore[union-attr]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def _image(path: str, written: str) -> bytes | str:
    """The bytes of an image file, or what is wrong with it."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return f"found {written!r}, which cannot be read ({reason}), expected the path of an image file"
    fault = find_fault(data)
    return f"{written!r}: {fault}" if fault else data
