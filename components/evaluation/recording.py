"""Records what an evaluation needs while rows pass through TFMA's extractors, such as the predictions table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
from apache_beam.transforms.combiners import TupleCombineFn
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_util
from tensorflow_model_analysis.proto import config_pb2

from components.evaluation import measures
from components.evaluation.columns import column
from components.evaluation.predictions import (
    WORST_ROWS,
    Array,
    PredictionsTable,
    Values,
    WorstRow,
    in_order,
    merge_tables,
    row_digests,
    table_from_bytes,
    table_to_bytes,
    text_of,
    unknown_table,
)
from contracts.errors import DataError


@dataclass(frozen=True)
class Recorder:
    """What to record. It is sent to Beam's workers, so it must not hold anything that only this process has.

    Attributes:
        read: Extracts the part to record from a batch of TFMA's extracts, to which `with_digests` has added.
        merge: Merges such parts.
        write: Writes the merged parts to a file.
    """

    read: Callable[[Mapping[str, Any]], Any]
    merge: beam.CombineFn
    write: Callable[[Any], None]


class Record(beam.PTransform):
    """Runs all recorders in one stage: at the size of our recipes, a stage costs more than the work in it.

    Args:
        recorders: What to record.
    """

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        super().__init__()
        self._recorders = tuple(recorders)

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        _ = (
            extracts
            | "Read" >> beam.Map(read_all, self._recorders)
            | "Merge"
            >> beam.CombineGlobally(
                TupleCombineFn(*(recorder.merge for recorder in self._recorders))
            ).without_defaults()
            | "Write" >> beam.Map(_write_all, self._recorders)
        )
        return extracts


DIGESTS_KEY = "digests"


def with_digests(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The batch with the digests of its rows, uint64 [rows]."""
    return {**batch, DIGESTS_KEY: row_digests(np.asarray(batch[constants.INPUT_KEY]).ravel())}


def read_all(batch: Mapping[str, Any], recorders: Sequence[Recorder]) -> tuple[Any, ...]:
    """What each recorder makes of a batch of TFMA's extracts."""
    digested = with_digests(batch)
    return tuple(recorder.read(digested) for recorder in recorders)


def _write_all(merged: Sequence[Any], recorders: Sequence[Recorder]) -> None:
    for recorder, result in zip(recorders, merged, strict=True):
        recorder.write(result)


MAX_PARTS = 64
"""A worker merges its parts whenever it has this many."""


@dataclass(frozen=True)
class Source:
    """Where in TFMA's extracts a batch's labels and predictions are.

    Attributes:
        candidate: The candidate's name if there are several models, else None.
        baseline: The baseline's name, or None.
        prediction_key: The output of the model that is judged, if it serves several.
        features: The features by which slices are formed.
        weight: The feature that holds the rows' weights, or None.
    """

    candidate: str | None
    baseline: str | None
    prediction_key: str
    features: tuple[str, ...]
    weight: str | None = None

    @classmethod
    def of(cls, config: config_pb2.EvalConfig) -> Source:
        """The source according to a configuration with TFMA's defaults filled in."""
        names = {spec.is_baseline: spec.name for spec in config.model_specs} if len(config.model_specs) > 1 else {}
        candidate = next(spec for spec in config.model_specs if not spec.is_baseline)
        features = sorted({key for spec in config.slicing_specs for key in spec.feature_keys})
        weight = candidate.example_weight_key or None
        return cls(names.get(False), names.get(True), candidate.prediction_key, tuple(features), weight)


def table_recorder(path: str, source: Source) -> Recorder:
    """Records the predictions table.

    Args:
        path: The file to write.
        source: Where labels and predictions are.
    """
    return Recorder(partial(read_batch, source=source), MergeTables(), partial(_write_table, path=path))


class MergeTables(beam.CombineFn):
    """Merges parts; its memory is bounded by the limits of `merge_tables` and `MAX_PARTS` batches."""

    def create_accumulator(self) -> list[PredictionsTable]:
        return []

    def add_input(self, accumulator: list[PredictionsTable], element: PredictionsTable) -> list[PredictionsTable]:
        return self.merge_accumulators([accumulator, [element]])

    def merge_accumulators(self, accumulators: Iterable[list[PredictionsTable]]) -> list[PredictionsTable]:
        parts = [part for accumulator in accumulators for part in accumulator]
        return parts if len(parts) < MAX_PARTS else [merge_tables(parts)]

    def compact(self, accumulator: list[PredictionsTable]) -> list[PredictionsTable]:
        return [merge_tables(accumulator)] if accumulator else accumulator

    def extract_output(self, accumulator: list[PredictionsTable]) -> PredictionsTable:
        return in_order(merge_tables(accumulator)) if accumulator else unknown_table(0)


def read_batch(batch: Mapping[str, Any], source: Source) -> PredictionsTable:
    """The predictions table of a batch.

    Args:
        batch: TFMA's extracts, still batched, with the rows' digests.
        source: Where in it labels and predictions are.

    Raises:
        DataError: A row's weight is missing, negative or not a number.
    """
    serialized = np.asarray(batch[constants.INPUT_KEY]).ravel()
    weights = weights_of(batch, source, len(serialized)) if source.weight else None
    judged = _labels_and_predictions(batch, source.candidate, source.prediction_key)
    if judged is None:
        return unknown_table(len(serialized))
    labels, predictions = judged
    compared = _labels_and_predictions(batch, source.baseline, source.prediction_key) if source.baseline else None
    baseline = compared[1] if compared and compared[1].shape == predictions.shape else None
    digests = batch[DIGESTS_KEY]
    slices = [_values(_feature(batch, source.candidate, name), len(serialized)) for name in source.features]
    return PredictionsTable(
        rows=len(serialized),
        digests=digests,
        labels=labels,
        predictions=predictions,
        baseline=baseline,
        features=source.features,
        slices=np.stack([codes for codes, _ in slices], 1) if slices else np.zeros((len(serialized), 0), np.int32),
        values=tuple(values for _, values in slices),
        worst=_worst(serialized, digests, labels, predictions),
        weights=weights,
    )


def _labels_and_predictions(batch: Mapping[str, Any], model: str | None, key: str) -> tuple[Array, Array] | None:
    """float64 [n] and float32 [n, k]; None if they are neither scores, numbers, nor one of several classes per row."""
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


def _worst(serialized: Array, digests: Array, labels: Array, predictions: Array) -> tuple[WorstRow, ...]:
    errors = measures.prediction_errors(labels, predictions)
    worst_rows = np.lexsort([digests, -errors])[:WORST_ROWS]
    return tuple(
        WorstRow(float(errors[row]), int(digests[row]), float(labels[row]), predictions[row], serialized[row])
        for row in worst_rows
    )


def _feature(batch: Mapping[str, Any], model: str | None, name: str) -> Any:
    """A column of the transformed features, where TFMA looks first, or else of the raw features."""
    transformed = batch.get(constants.TRANSFORMED_FEATURES_KEY) or {}
    of_model = transformed if model is None else transformed.get(model, {})
    return of_model.get(name, batch[constants.FEATURES_KEY].get(name))


def _cells(column: Any, rows: int) -> list[list[Any]]:
    """The values of a feature in each row: none, one, or several."""
    if isinstance(column, np.ndarray):
        dense: list[list[Any]] = column.reshape(rows, math.prod(column.shape[1:])).tolist()
        return dense
    cells: list[list[Any]] = [[] for _ in range(rows)]
    if column is not None:
        for index, value in zip(column.indices, column.values.tolist(), strict=True):
            cells[index[0]].append(value)
    return cells


def _values(values: Any, rows: int) -> tuple[Array, tuple[Values, ...]]:
    """A feature as positions, int32 [rows], among its distinct values."""
    positions: dict[Values, int] = {}
    if isinstance(values, np.ndarray) and values.size == rows:
        encoded = column(values)
        places = [positions.setdefault((text_of(value),), len(positions)) for value in encoded.values]
        return np.array(places, np.int32)[encoded.codes], tuple(positions)
    codes = [positions.setdefault(tuple(map(text_of, cell)), len(positions)) for cell in _cells(values, rows)]
    return np.array(codes, np.int32), tuple(positions)


def check_weights(batch: Mapping[str, Any], source: Source) -> Mapping[str, Any]:
    """The batch, if each of its rows has a weight.

    Raises:
        DataError: A row's weight is missing, negative or not a number.
    """
    weights_of(batch, source, np.asarray(batch[constants.INPUT_KEY]).size)
    return batch


def weights_of(batch: Mapping[str, Any], source: Source, rows: int) -> Array:
    """Each row's weight, float64 [rows].

    Args:
        batch: TFMA's extracts.
        source: Where in it the weights are.
        rows: How many there are.

    Raises:
        DataError: A row's weight is missing, negative or not a number.
    """
    cells = _cells(_feature(batch, source.candidate, str(source.weight)), rows)
    invalid = [cell for cell in cells if not (len(cell) == 1 and _is_weight(cell[0]))]
    if invalid:
        raise DataError(
            f"evaluator.example_weight: no weight in {source.weight!r} in {len(invalid):,} of {rows:,} rows that were "
            f"read together; received {invalid[0]}, expected one number of at least 0.",
            "Give each row its weight in the data, or take example_weight out of recipe.yaml.",
        )
    return np.array(cells, np.float64).ravel()


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _write_table(table: PredictionsTable, path: str) -> None:
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(table_to_bytes(table))


def read_table(path: str) -> PredictionsTable:
    """Reads a table written by `table_recorder`."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return table_from_bytes(file.read())
