"""The predictions table of an evaluation: label, prediction and slices of each row, side by side in arrays.

Parts of a table can be merged in any order, with the same result. Of more than `MAX_ROWS` rows the table holds those
with the smallest digests: a random choice that depends neither on order nor on batches. NumPy alone can read the file.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

MAX_ROWS = 200_000
"""The most rows whose label and prediction the table holds."""

MAX_VALUES = 10_000_000
"""The most numbers that the predictions of one model may have; with many classes the table holds fewer rows."""

WORST_ROWS = 20

OPTIONAL_COLUMNS = ("baseline", "weights")

Array = npt.NDArray[Any]
Values = tuple[str, ...]
"""What a row has of a feature, as text: nothing, one value, or several."""


@dataclass(frozen=True)
class WorstRow:
    """One of the rows that the model is most wrong about.

    Attributes:
        error: What they are ordered by: how far a number is off, or the cross-entropy of a class; infinite where the
            prediction is not a number.
        digest: Of the row; orders those that are equally wrong.
        label: The class id or the number.
        prediction: float32 [k].
        serialized: The row.
    """

    error: float
    digest: int
    label: float
    prediction: Array
    serialized: bytes

    @property
    def rank(self) -> tuple[float, int, float]:
        """Smaller is worse."""
        return (-self.error, self.digest, self.label)


@dataclass(frozen=True)
class PredictionsTable:
    """The rows of an evaluation, or of a part of it.

    Attributes:
        rows: How many rows were evaluated; those below may be fewer.
        digests: The first 64 bits of the SHA-256 of the serialized rows, uint64 [n].
        labels: Class ids or numbers, float64 [n].
        predictions: The candidate's, float32 [n, k]: k is 1 for a score or a number, else the number of classes. With k
            of 0 the labels or predictions were of no kind that is known here.
        baseline: The baseline's, in the same shape, or None.
        features: Those that slices are cut by.
        slices: For each of them a position in `values`, int32 [n, features].
        values: For each of them what rows have of it.
        worst: The rows that the model is most wrong about, the worst first.
        weights: At least 0, float64 [n]; None where rows have none.
    """

    rows: int
    digests: Array
    labels: Array
    predictions: Array
    baseline: Array | None
    features: tuple[str, ...]
    slices: Array
    values: tuple[tuple[Values, ...], ...]
    worst: tuple[WorstRow, ...] = ()
    weights: Array | None = None

    def take(self, which: Array) -> PredictionsTable:
        """The rows at these positions or under this mask; `rows` and `worst` stay."""
        baseline = None if self.baseline is None else self.baseline[which]
        return replace(
            self,
            digests=self.digests[which],
            labels=self.labels[which],
            predictions=self.predictions[which],
            baseline=baseline,
            slices=self.slices[which],
            weights=None if self.weights is None else self.weights[which],
        )


def row_digest(serialized: bytes) -> int:
    """What `PredictionsTable.digests` has of a row."""
    return int.from_bytes(hashlib.sha256(serialized).digest()[:8], "big")


def text_of(value: Any) -> str:
    """A feature's value as a slice shows it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def unknown_table(rows: int) -> PredictionsTable:
    """So many rows whose labels or predictions are of no kind that is known here."""
    none = np.zeros(0)
    return PredictionsTable(
        rows, none.astype(np.uint64), none, none.reshape(0, 0), None, (), np.zeros((0, 0), np.int32), ()
    )


def merge_tables(
    parts: Sequence[PredictionsTable], max_rows: int = MAX_ROWS, max_values: int = MAX_VALUES
) -> PredictionsTable:
    """The parts as one, with at most `max_rows` rows and `max_values` numbers a model.

    Args:
        parts: At least one.
        max_rows: The most rows to keep.
        max_values: The most numbers to keep of a model's predictions.
    """
    # Nothing tells of what kind the rows of an empty part would have been.
    parts = [part for part in parts if part.rows] or parts[:1]
    rows = sum(part.rows for part in parts)
    widths = {part.predictions.shape[1] for part in parts}
    if len(widths) > 1 or widths == {0}:
        return unknown_table(rows)
    [width] = widths
    values, slices = _merged_values(parts)
    whole = PredictionsTable(
        rows=rows,
        digests=np.concatenate([part.digests for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        predictions=np.concatenate([part.predictions for part in parts]),
        baseline=_joined([part.baseline for part in parts]),
        features=parts[0].features,
        slices=slices,
        values=values,
        worst=tuple(
            heapq.nsmallest(WORST_ROWS, (row for part in parts for row in part.worst), key=lambda row: row.rank)
        ),
        weights=_joined([part.weights for part in parts]),
    )
    limit = max(1, min(max_rows, max_values // width))
    if len(whole.digests) <= limit:
        return whole
    return whole.take(np.argpartition(whole.digests, limit - 1)[:limit])


def _joined(columns: Sequence[Array | None]) -> Array | None:
    """A column of all parts; None where one lacks it."""
    known = [column for column in columns if column is not None]
    return np.concatenate(known) if len(known) == len(columns) else None


def in_order(table: PredictionsTable) -> PredictionsTable:
    """The same rows and values in an order that does not depend on how they came together."""
    columns = table.predictions.T[:1] if table.predictions.shape[1] else ()
    rows = table.take(np.lexsort([*columns, table.labels, table.digests]))
    values, slices = [], np.empty_like(rows.slices)
    for feature, known in enumerate(table.values):
        order = sorted(range(len(known)), key=known.__getitem__)
        values.append(tuple(known[position] for position in order))
        slices[:, feature] = np.argsort(order)[rows.slices[:, feature]] if known else 0
    return replace(rows, values=tuple(values), slices=slices)


def _merged_values(parts: Sequence[PredictionsTable]) -> tuple[tuple[tuple[Values, ...], ...], Array]:
    """All values of each feature, and the parts' rows as positions among them."""
    features = len(parts[0].values)
    positions: list[dict[Values, int]] = [{} for _ in range(features)]
    slices = []
    for part in parts:
        moved = np.empty_like(part.slices)
        for feature, known in enumerate(part.values):
            to = [positions[feature].setdefault(value, len(positions[feature])) for value in known]
            moved[:, feature] = np.array(to, np.int32)[part.slices[:, feature]]
        slices.append(moved)
    return tuple(tuple(known) for known in positions), np.concatenate(slices)


def table_to_bytes(table: PredictionsTable) -> bytes:
    """The content of a `.npz` file that holds everything and no pickles."""
    arrays = {
        "digests": table.digests,
        "labels": table.labels,
        "predictions": table.predictions,
        "slices": table.slices,
        "worst_predictions": np.array([row.prediction for row in table.worst], np.float32),
        "worst_serialized": np.frombuffer(b"".join(row.serialized for row in table.worst), np.uint8),
    }
    arrays |= {name: part for name in OPTIONAL_COLUMNS if (part := getattr(table, name)) is not None}
    header = {
        "rows": table.rows,
        "features": table.features,
        "values": table.values,
        "worst": [[row.error, row.digest, row.label, len(row.serialized)] for row in table.worst],
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def table_from_bytes(content: bytes) -> PredictionsTable:
    """The inverse of `table_to_bytes`."""
    arrays = np.load(io.BytesIO(content), allow_pickle=False)
    header = json.loads(arrays["header"].tobytes())
    serialized, worst, start = arrays["worst_serialized"].tobytes(), [], 0
    for (error, digest, label, size), prediction in zip(header["worst"], arrays["worst_predictions"], strict=True):
        worst.append(WorstRow(error, digest, label, prediction, serialized[start : start + size]))
        start += size
    return PredictionsTable(
        rows=header["rows"],
        digests=arrays["digests"],
        labels=arrays["labels"],
        predictions=arrays["predictions"],
        features=tuple(header["features"]),
        slices=arrays["slices"],
        values=tuple(tuple(tuple(value) for value in known) for known in header["values"]),
        worst=tuple(worst),
        **{name: arrays.get(name) for name in OPTIONAL_COLUMNS},
    )


Task = Literal["binary", "multiclass", "regression", "other"]
SliceKey = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ScoredRows:
    """Rows whose labels and predictions are numbers.

    Attributes:
        task: What they are from; `other` where that is not known: then there are no rows.
        labels: Class ids or numbers, float64 [n]; in a binary task 0 and 1.
        predictions: The chance of 1 or a number, float64 [n], or of each class, float64 [n, k].
        baseline: The baseline's, or None.
        weights: At least 0, float64 [n]; 1 where rows have none.
    """

    task: Task
    labels: Array
    predictions: Array
    baseline: Array | None
    weights: Array

    def take(self, which: Array) -> ScoredRows:
        """The rows at these positions."""
        baseline = None if self.baseline is None else self.baseline[which]
        return ScoredRows(self.task, self.labels[which], self.predictions[which], baseline, self.weights[which])


def score_rows(table: PredictionsTable) -> tuple[ScoredRows, PredictionsTable]:
    """The rows as what they are from, and the table with the same rows: all whose label and predictions are numbers."""
    sound = np.isfinite(table.labels) & np.isfinite(table.predictions).all(axis=1)
    if table.baseline is not None:
        sound &= np.isfinite(table.baseline).all(axis=1)
    rows = table.take(sound)
    baseline = None if rows.baseline is None else _shaped(rows.baseline)
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    return ScoredRows(_task(rows), rows.labels, _shaped(rows.predictions), baseline, weights), rows


def rows_of_slice(table: PredictionsTable, key: SliceKey) -> Array:
    """The positions of the rows of a slice.

    Args:
        table: The rows.
        key: For each feature that the slice is cut by its value as text.
    """
    inside = np.ones(len(table.labels), bool)
    for feature, value in key:
        column = table.features.index(feature)
        wanted = [position for position, values in enumerate(table.values[column]) if value in values]
        inside &= np.isin(table.slices[:, column], wanted)
    return np.flatnonzero(inside)


def _task(rows: PredictionsTable) -> Task:
    width = rows.predictions.shape[1]
    if not width or not len(rows.labels):
        return "other"
    if width > 1:
        return "multiclass"
    chances = bool(((rows.predictions >= 0) & (rows.predictions <= 1)).all())
    return "binary" if chances and bool(np.isin(rows.labels, (0, 1)).all()) else "regression"


def _shaped(predictions: Array) -> Array:
    values = predictions.astype(np.float64)
    return values[:, 0] if values.shape[1] == 1 else values
