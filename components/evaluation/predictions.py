"""The predictions table of an evaluation: label, prediction and slices of each row, as parallel arrays.

Parts of a table can be merged in any order, with the same result. If there are more than `MAX_ROWS` rows, the table
holds those with the smallest digests, a random choice that depends neither on order nor on batches. The file can be
read with NumPy alone.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import json
from collections.abc import Iterable, Sequence
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
"""The values of a feature in a row as text: none, one, or several."""


@dataclass(frozen=True)
class WorstRow:
    """One of the rows that the model is most wrong about.

    Attributes:
        error: Ranks the rows: the distance of a number from its label, or the cross-entropy of a class; infinite if the
            prediction is not a number.
        digest: The row's digest; ranks rows that are equally wrong.
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
        rows: The number of rows that were evaluated; the table may hold fewer.
        digests: The first 64 bits of the SHA-256 of the serialized rows, uint64 [n].
        labels: Class ids or numbers, float64 [n].
        predictions: The candidate's, float32 [n, k]: k is 1 for a score or a number, else the number of classes. It is
            0 if the labels or predictions were of an unknown kind.
        baseline: The baseline's predictions in the same shape, or None.
        features: The features by which slices are formed.
        slices: For each row and feature, a position in `values`, int32 [n, features].
        values: For each feature, the distinct values that rows have.
        worst: The rows that the model is most wrong about, the worst first.
        weights: At least 0, float64 [n]; None if rows have no weights.
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

    def take(self, rows: Array) -> PredictionsTable:
        """The rows at these positions or under this mask; `rows` and `worst` stay."""
        baseline = None if self.baseline is None else self.baseline[rows]
        return replace(
            self,
            digests=self.digests[rows],
            labels=self.labels[rows],
            predictions=self.predictions[rows],
            baseline=baseline,
            slices=self.slices[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


def row_digests(rows: Iterable[bytes]) -> Array:
    """The digests of serialized rows, as `PredictionsTable.digests` has them, uint64 [rows]."""
    return np.frombuffer(b"".join(hashlib.sha256(row).digest()[:8] for row in rows), ">u8").astype(np.uint64)


def row_digest(serialized: bytes) -> int:
    """The digest of a row."""
    return int(row_digests([serialized])[0])


def text_of(value: Any) -> str:
    """A feature's value as a slice shows it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def unknown_table(rows: int) -> PredictionsTable:
    """A table of this many rows whose labels or predictions are of an unknown kind."""
    none = np.zeros(0)
    return PredictionsTable(
        rows, none.astype(np.uint64), none, none.reshape(0, 0), None, (), np.zeros((0, 0), np.int32), ()
    )


def merge_tables(
    parts: Sequence[PredictionsTable], max_rows: int = MAX_ROWS, max_values: int = MAX_VALUES
) -> PredictionsTable:
    """The parts as one table, with at most `max_rows` rows, and `max_values` numbers per model.

    Args:
        parts: At least one.
        max_rows: The most rows to keep.
        max_values: The most numbers to keep of a model's predictions.
    """
    # The kind of an empty part's rows is not known.
    parts = [part for part in parts if part.rows] or parts[:1]
    rows = sum(part.rows for part in parts)
    widths = {part.predictions.shape[1] for part in parts}
    if len(widths) > 1 or widths == {0}:
        return unknown_table(rows)
    [width] = widths
    values, slices = _merged_values(parts)
    merged = PredictionsTable(
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
    if len(merged.digests) <= limit:
        return merged
    return merged.take(np.argpartition(merged.digests, limit - 1)[:limit])


def _joined(columns: Sequence[Array | None]) -> Array | None:
    """A column of all parts; None if any of them lacks it."""
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if len(present) == len(columns) else None


def in_order(table: PredictionsTable) -> PredictionsTable:
    """The same rows and values in an order that does not depend on how the table was merged."""
    columns = table.predictions.T[:1] if table.predictions.shape[1] else ()
    rows = table.take(np.lexsort([*columns, table.labels, table.digests]))
    values, slices = [], np.empty_like(rows.slices)
    for feature, feature_values in enumerate(table.values):
        order = sorted(range(len(feature_values)), key=feature_values.__getitem__)
        values.append(tuple(feature_values[position] for position in order))
        slices[:, feature] = np.argsort(order)[rows.slices[:, feature]] if feature_values else 0
    return replace(rows, values=tuple(values), slices=slices)


def _merged_values(parts: Sequence[PredictionsTable]) -> tuple[tuple[tuple[Values, ...], ...], Array]:
    """All values of each feature, and the parts' rows as positions among them."""
    features = len(parts[0].values)
    positions: list[dict[Values, int]] = [{} for _ in range(features)]
    slices = []
    for part in parts:
        merged_slices = np.empty_like(part.slices)
        for feature, feature_values in enumerate(part.values):
            new_positions = [positions[feature].setdefault(value, len(positions[feature])) for value in feature_values]
            merged_slices[:, feature] = np.array(new_positions, np.int32)[part.slices[:, feature]]
        slices.append(merged_slices)
    return tuple(tuple(feature_values) for feature_values in positions), np.concatenate(slices)


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
        values=tuple(tuple(tuple(value) for value in feature_values) for feature_values in header["values"]),
        worst=tuple(worst),
        **{name: arrays.get(name) for name in OPTIONAL_COLUMNS},
    )


Task = Literal["binary", "multiclass", "regression", "other"]
SliceKey = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ScoredRows:
    """Rows whose labels and predictions are numbers.

    Attributes:
        task: The task; `other` if it is not known, in which case there are no rows.
        labels: Class ids or numbers, float64 [n]; 0 and 1 in a binary task.
        predictions: The probability of 1 or a number, float64 [n], or a score for each class, float64 [n, k].
        baseline: The baseline's predictions, or None.
        weights: At least 0, float64 [n]; 1 if rows have no weights.
    """

    task: Task
    labels: Array
    predictions: Array
    baseline: Array | None
    weights: Array

    def take(self, rows: Array) -> ScoredRows:
        """The rows at these positions."""
        baseline = None if self.baseline is None else self.baseline[rows]
        return ScoredRows(self.task, self.labels[rows], self.predictions[rows], baseline, self.weights[rows])


def score_rows(table: PredictionsTable) -> tuple[ScoredRows, PredictionsTable]:
    """The rows whose label and predictions are numbers, with their task, and the table of the same rows."""
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
        key: The features that define the slice, each with its value as text.
    """
    inside = np.ones(len(table.labels), bool)
    for feature, value in key:
        column = table.features.index(feature)
        matching = [position for position, values in enumerate(table.values[column]) if value in values]
        inside &= np.isin(table.slices[:, column], matching)
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
