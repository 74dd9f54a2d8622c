"""What is checked in every row after it was read: declared types, labels, and that numbers fit into float32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.contract import Batch
from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind
from components.example_gen.oddities import Oddity, Watch
from components.example_gen.settings import DataSettings
from components.example_gen.time_split import TimeSplit
from contracts.rejected_rows import RejectedRow

LABEL, OVERFLOW, INFINITE, PADDED = "label", "overflow", "infinite", "padded"
_LARGEST = float(np.finfo(np.float32).max)
_REASONS = {LABEL: "found no label", OVERFLOW: "found {text}, which does not fit into a float of 32 bits"}

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fault:
    """Rows in which a column has the same fault.

    Attributes:
        kind: LABEL; OVERFLOW; INFINITE, numbers that are written as infinite; PADDED, integers with leading zeros.
        column: Which column.
        rows: How many rows.
        where: File and line of the first.
        text: What was found there.
    """

    kind: str
    column: str
    rows: int
    where: str
    text: str


class RowChecks:
    """Checks the rows of a shard, one batch after the other, and notes what it finds.

    Args:
        settings: What becomes of a row in which something is wrong.
        labels: The columns without which a row is of no use.
    """

    def __init__(self, settings: DataSettings, labels: Sequence[str]) -> None:
        self._settings, self._labels = settings, labels
        self._faults: dict[tuple[str, str], Fault] = {}
        self._watch = Watch(settings.columns)
        self._time_split = TimeSplit(settings.split_by_time) if settings.split_by_time else None

    @property
    def faults(self) -> list[Fault]:
        """What was found so far, whatever became of the rows."""
        return list(self._faults.values())

    @property
    def oddities(self) -> list[Oddity]:
        """The columns that became text because of a few cells."""
        return self._watch.oddities

    def check(self, batch: Batch, file: str) -> Batch:
        """Returns the batch with rows set aside and values clipped, as the settings say.

        Args:
            batch: Rows as they were read.
            file: The file that they are from.

        Raises:
            BadRowError: A row is malformed, and `on_bad_row` is `fail`.
        """
        self._watch.look(batch)
        unplaced = self._time_split.unplaced(batch) if self._time_split else ()
        malformed = self._to_reject(batch, file, chain(_wrong_values(batch), unplaced))
        if self._settings.on_bad_row == "fail" and (all_malformed := [*batch.rejected, *malformed.values()]):
            raise min(all_malformed, key=lambda row: row.line or 0).as_error()
        reasons = self._to_reject(batch, file, self._faulty_rows(batch, file)) | malformed
        columns = batch.columns
        if self._settings.on_overflow == "clip":
            columns = [_clipped(column) if column.too_large else column for column in columns]
        if not reasons:
            return replace(batch, columns=columns)
        keep = np.ones(batch.num_rows, bool)
        keep[list(reasons)] = False
        rejected = sorted([*batch.rejected, *reasons.values()], key=lambda row: row.line or 0)
        return Batch([_kept(column, keep) for column in columns], int(keep.sum()), rejected)

    @staticmethod
    def _to_reject(batch: Batch, file: str, reasons: Iterable[tuple[int, str, str]]) -> dict[int, RejectedRow]:
        found: dict[int, RejectedRow] = {}
        for row, column, reason in reasons:
            line, raw = batch.place(row)
            found.setdefault(row, RejectedRow(file, line, column, reason, raw))
        return found

    def _faulty_rows(self, batch: Batch, file: str) -> Iterator[tuple[int, str, str]]:
        """Yields the rows that the settings set aside, each with a column and a reason."""
        for column in batch.columns:
            if column.too_large:
                texts = {_row_of(column, at): text for at, text in column.too_large.items()}
                yield from self._note(batch, file, OVERFLOW, column.name, texts, self._settings.on_overflow)
            if column.padded:
                texts = {_row_of(column, at): text for at, text in column.padded.items()}
                yield from self._note(batch, file, PADDED, column.name, texts, "keep")
            if infinite := _written_as_infinite(column):
                yield from self._note(batch, file, INFINITE, column.name, infinite, "keep")
        for column in batch.columns:
            if column.name in self._labels and (rows := _without_value(column)).any():
                texts = dict.fromkeys(np.flatnonzero(rows).tolist(), "")
                yield from self._note(batch, file, LABEL, column.name, texts, self._settings.on_missing_label)

    def _note(
        self, batch: Batch, file: str, kind: str, column: str, texts: Mapping[int, str], what_to_do: str
    ) -> Iterator[tuple[int, str, str]]:
        known = self._faults.get((kind, column))
        if known is None:
            first, text = next(iter(texts.items()))
            line, raw = batch.place(first)
            unit = "row" if raw is None else "line"
            known = Fault(kind, column, 0, file if line is None else f"{file}, {unit} {line}", text)
        self._faults[kind, column] = replace(known, rows=known.rows + len(texts))
        if what_to_do == "set_aside":
            for row, text in texts.items():
                yield row, column, _REASONS[kind].format(text=text)


def merge_faults(faults: Sequence[Fault]) -> list[Fault]:
    """Adds up the faults of several shards, in their order."""
    merged: dict[tuple[str, str], Fault] = {}
    for fault in faults:
        known = merged.setdefault((fault.kind, fault.column), replace(fault, rows=0))
        merged[fault.kind, fault.column] = replace(known, rows=known.rows + fault.rows)
    return list(merged.values())


def _wrong_values(batch: Batch) -> Iterator[tuple[int, str, str]]:
    for column in batch.columns:
        for at, reason in column.wrong.items():
            yield _row_of(column, at), column.name, reason


def _row_of(column: Column, position: int) -> int:
    return int(np.searchsorted(column.offsets, position, side="right")) - 1


def _written_as_infinite(column: Column) -> dict[int, str]:
    """Returns the rows with such a number, and the number."""
    if column.values is None or column.kind is not Kind.FLOAT:
        return {}
    values = column.values.to_numpy(zero_copy_only=False)
    return {
        _row_of(column, int(at)): f"{values[at]:g}"
        for at in np.flatnonzero(np.isinf(values))
        if at not in column.too_large
    }


def _without_value(column: Column) -> Mask:
    """Which rows have no value, or none but NaN or the empty text."""
    empty: Mask = np.diff(column.offsets) == 0
    if column.values is None or column.kind is Kind.INT:
        return empty
    blank = pc.is_nan(column.values) if column.kind is Kind.FLOAT else pc.equal(pc.binary_length(column.values), 0)
    positions = np.flatnonzero(blank.to_numpy(zero_copy_only=False))
    empty[np.searchsorted(column.offsets, positions, side="right") - 1] = True
    return empty


def _clipped(column: Column) -> Column:
    values = np.array(column.values)
    at = list(column.too_large)
    values[at] = np.copysign(np.float32(_LARGEST), values[at])
    return replace(column, values=pa.array(values))


def _kept(column: Column, keep: Mask) -> Column:
    sizes = np.diff(column.offsets)
    offsets = np.concatenate(([0], np.cumsum(sizes[keep], dtype=np.int64)))
    values = None if column.values is None else column.values.filter(pa.array(np.repeat(keep, sizes)))
    return Column(column.name, column.kind, values, offsets)
