"""What an evaluation keeps of its rows: label, prediction and slices of each, side by side in arrays.

Parts of an evaluation are put together in any order and give the same. Above `MAX_ROWS` rows, those with the smallest
digests are kept: a random choice that depends neither on order nor on batches. NumPy alone reads the file.
"""

from __future__ import annotations

import heapq
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_ROWS = 200_000
"""Of how many rows label and prediction are kept at most."""

MAX_VALUES = 10_000_000
"""How many numbers the predictions of one model may be that are kept; with many classes, of fewer rows."""

WORST_ROWS = 20

Array = npt.NDArray[Any]
Values = tuple[str, ...]
"""What a row has of a feature, as text: nothing, one value, or several."""


@dataclass(frozen=True)
class Worst:
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
class Kept:
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
    """

    rows: int
    digests: Array
    labels: Array
    predictions: Array
    baseline: Array | None
    features: tuple[str, ...]
    slices: Array
    values: tuple[tuple[Values, ...], ...]
    worst: tuple[Worst, ...] = ()

    def take(self, which: Array) -> Kept:
        """The rows at these positions or under this mask; `rows` and `worst` stay."""
        baseline = None if self.baseline is None else self.baseline[which]
        return replace(
            self,
            digests=self.digests[which],
            labels=self.labels[which],
            predictions=self.predictions[which],
            baseline=baseline,
            slices=self.slices[which],
        )


def text_of(value: Any) -> str:
    """A feature's value as a slice shows it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def unknown(rows: int) -> Kept:
    """So many rows whose labels or predictions are of no kind that is known here."""
    none = np.zeros(0)
    return Kept(rows, none.astype(np.uint64), none, none.reshape(0, 0), None, (), np.zeros((0, 0), np.int32), ())


def merge(parts: Sequence[Kept], max_rows: int = MAX_ROWS, max_values: int = MAX_VALUES) -> Kept:
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
        return unknown(rows)
    [width] = widths
    compared = all(part.baseline is not None for part in parts)
    values, slices = _merged_values(parts)
    whole = Kept(
        rows=rows,
        digests=np.concatenate([part.digests for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        predictions=np.concatenate([part.predictions for part in parts]),
        baseline=np.concatenate([part.baseline for part in parts if part.baseline is not None]) if compared else None,
        features=parts[0].features,
        slices=slices,
        values=values,
        worst=tuple(
            heapq.nsmallest(WORST_ROWS, (row for part in parts for row in part.worst), key=lambda row: row.rank)
        ),
    )
    limit = max(1, min(max_rows, max_values // width))
    if len(whole.digests) <= limit:
        return whole
    return whole.take(np.argpartition(whole.digests, limit - 1)[:limit])


def ordered(kept: Kept) -> Kept:
    """The same rows and values in an order that does not depend on how they came together."""
    columns = kept.predictions.T[:1] if kept.predictions.shape[1] else ()
    rows = kept.take(np.lexsort([*columns, kept.labels, kept.digests]))
    values, slices = [], np.empty_like(rows.slices)
    for feature, known in enumerate(kept.values):
        order = sorted(range(len(known)), key=known.__getitem__)
        values.append(tuple(known[position] for position in order))
        slices[:, feature] = np.argsort(order)[rows.slices[:, feature]] if known else 0
    return replace(rows, values=tuple(values), slices=slices)


def _merged_values(parts: Sequence[Kept]) -> tuple[tuple[tuple[Values, ...], ...], Array]:
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


def to_bytes(kept: Kept) -> bytes:
    """The content of a `.npz` file that holds everything and no pickles."""
    arrays = {
        "digests": kept.digests,
        "labels": kept.labels,
        "predictions": kept.predictions,
        "slices": kept.slices,
        "worst_predictions": np.array([row.prediction for row in kept.worst], np.float32),
        "worst_serialized": np.frombuffer(b"".join(row.serialized for row in kept.worst), np.uint8),
    }
    if kept.baseline is not None:
        arrays["baseline"] = kept.baseline
    header = {
        "rows": kept.rows,
        "features": kept.features,
        "values": kept.values,
        "worst": [[row.error, row.digest, row.label, len(row.serialized)] for row in kept.worst],
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def from_bytes(content: bytes) -> Kept:
    """The inverse of `to_bytes`."""
    arrays = np.load(io.BytesIO(content), allow_pickle=False)
    header = json.loads(arrays["header"].tobytes())
    serialized, worst, start = arrays["worst_serialized"].tobytes(), [], 0
    for (error, digest, label, size), prediction in zip(header["worst"], arrays["worst_predictions"], strict=True):
        worst.append(Worst(error, digest, label, prediction, serialized[start : start + size]))
        start += size
    return Kept(
        rows=header["rows"],
        digests=arrays["digests"],
        labels=arrays["labels"],
        predictions=arrays["predictions"],
        baseline=arrays.get("baseline"),
        features=tuple(header["features"]),
        slices=arrays["slices"],
        values=tuple(tuple(tuple(value) for value in known) for known in header["values"]),
        worst=tuple(worst),
    )
