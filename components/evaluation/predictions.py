"""Keeps labels and predictions of an evaluation's rows, as TFMA's extractors hand them through."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_util

from components.evaluation import kept, losses
from components.evaluation.keeping import Keeper
from components.evaluation.kept import Array, Kept, Values, text_of

MAX_PARTS = 64
"""After so many parts a worker puts them together."""


@dataclass(frozen=True)
class Source:
    """Where in TFMA's extracts a batch's labels and predictions are.

    Attributes:
        candidate: The candidate's name where there are several models, else None.
        baseline: The baseline's name, or None.
        prediction_key: Which output of the model is judged, where it serves several.
        features: Those that slices are cut by.
    """

    candidate: str | None
    baseline: str | None
    prediction_key: str
    features: tuple[str, ...]

    @classmethod
    def of(cls, config: tfma.EvalConfig) -> Source:
        """What a configuration, with TFMA's defaults filled in, says."""
        names = {spec.is_baseline: spec.name for spec in config.model_specs} if len(config.model_specs) > 1 else {}
        candidate = next(spec for spec in config.model_specs if not spec.is_baseline)
        features = sorted({key for spec in config.slicing_specs for key in spec.feature_keys})
        return cls(names.get(False), names.get(True), candidate.prediction_key, tuple(features))


def keeper(path: str, source: Source) -> Keeper:
    """Keeps labels and predictions.

    Args:
        path: The file to write.
        source: Where they are.
    """
    return Keeper(partial(read_batch, source=source), MergeParts(), partial(_write, path=path))


class MergeParts(beam.CombineFn):
    """Puts parts together; what it holds meanwhile is bounded by the limits of `kept.merge` and `MAX_PARTS` batches."""

    def create_accumulator(self) -> list[Kept]:
        return []

    def add_input(self, accumulator: list[Kept], element: Kept) -> list[Kept]:
        return self.merge_accumulators([accumulator, [element]])

    def merge_accumulators(self, accumulators: Iterable[list[Kept]]) -> list[Kept]:
        parts = [part for accumulator in accumulators for part in accumulator]
        return parts if len(parts) < MAX_PARTS else [kept.merge(parts)]

    def compact(self, accumulator: list[Kept]) -> list[Kept]:
        return [kept.merge(accumulator)] if accumulator else accumulator

    def extract_output(self, accumulator: list[Kept]) -> Kept:
        return kept.ordered(kept.merge(accumulator)) if accumulator else kept.unknown(0)


def read_batch(batch: Mapping[str, Any], source: Source) -> Kept:
    """What is kept of a batch.

    Args:
        batch: TFMA's extracts before the batches are taken apart.
        source: Where in it labels and predictions are.
    """
    serialized = np.asarray(batch[constants.INPUT_KEY]).ravel()
    found = _labels_and_predictions(batch, source.candidate, source.prediction_key)
    if found is None:
        return kept.unknown(len(serialized))
    labels, predictions = found
    compared = _labels_and_predictions(batch, source.baseline, source.prediction_key) if source.baseline else None
    baseline = compared[1] if compared and compared[1].shape == predictions.shape else None
    digests = np.array([int.from_bytes(hashlib.sha256(row).digest()[:8], "big") for row in serialized], np.uint64)
    slices = [_values(_feature(batch, source.candidate, name), len(serialized)) for name in source.features]
    return Kept(
        rows=len(serialized),
        digests=digests,
        labels=labels,
        predictions=predictions,
        baseline=baseline,
        features=source.features,
        slices=np.stack([codes for codes, _ in slices], 1) if slices else np.zeros((len(serialized), 0), np.int32),
        values=tuple(values for _, values in slices),
        worst=_worst(serialized, digests, labels, predictions),
    )


def _labels_and_predictions(batch: Mapping[str, Any], model: str | None, key: str) -> tuple[Array, Array] | None:
    """float64 [n] and float32 [n, k]; None where they are neither scores nor numbers nor one class of several a row."""
    labels, predictions = batch[constants.LABELS_KEY], batch[constants.PREDICTIONS_KEY]
    if model is not None:
        labels = labels[model] if isinstance(labels, Mapping) else labels
        predictions = predictions[model]
    labels, predictions = metric_util.prepare_labels_and_predictions(labels, predictions, key)
    if not (_is_numeric(labels) and _is_numeric(predictions) and len(predictions)):
        return None
    predictions = predictions.reshape(len(predictions), -1)
    if labels.size == predictions.size and predictions.shape[1] > 1:
        labels = labels.reshape(predictions.shape)
        if not (np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()):
            return None
        labels = labels.argmax(axis=1)
    if labels.size != len(predictions):
        return None
    labels = labels.ravel().astype(np.float64)
    if predictions.shape[1] > 1 and not (np.isin(labels, np.arange(predictions.shape[1])).all()):
        return None
    return labels, predictions.astype(np.float32)


def _is_numeric(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "biuf"


def _worst(serialized: Array, digests: Array, labels: Array, predictions: Array) -> tuple[kept.Worst, ...]:
    errors = losses.errors(labels, predictions)
    few = np.lexsort([digests, -errors])[: kept.WORST_ROWS]
    return tuple(
        kept.Worst(float(errors[row]), int(digests[row]), float(labels[row]), predictions[row], serialized[row])
        for row in few
    )


def _feature(batch: Mapping[str, Any], model: str | None, name: str) -> Any:
    """A column: of the transformed features where TFMA has it there, for there it looks first, else of the raw ones."""
    transformed = batch.get(constants.TRANSFORMED_FEATURES_KEY) or {}
    of_model = transformed if model is None else transformed.get(model, {})
    return of_model.get(name, batch[constants.FEATURES_KEY].get(name))


def _values(column: Any, rows: int) -> tuple[Array, tuple[Values, ...]]:
    """A feature as positions, int32 [rows], among what its rows have of it."""
    if column is None:
        return np.zeros(rows, np.int32), ((),)
    if isinstance(column, np.ndarray):
        cells: Sequence[Any] = column.reshape(rows, math.prod(column.shape[1:])).tolist()
    else:
        cells = [[] for _ in range(rows)]
        for index, value in zip(column.indices, column.values.tolist(), strict=True):
            cells[index[0]].append(value)
    positions: dict[Values, int] = {}
    codes = [positions.setdefault(tuple(map(text_of, cell)), len(positions)) for cell in cells]
    return np.array(codes, np.int32), tuple(positions)


def _write(parts: Kept, path: str) -> None:
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(kept.to_bytes(parts))


def read(path: str) -> Kept:
    """What `keeper` wrote."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return kept.from_bytes(file.read())
