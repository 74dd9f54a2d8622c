"""The rows that the evaluation kept, with their predictions, positions in the split `eval` and transformed features."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from contracts.errors import DataError

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

REQUEST_ROWS = 512
REQUEST_BYTES = 4 * 2**20
"""Limits of one request; as JSON it is several times as large, and the server accepts 64 MiB."""

READ_ROWS = 4_096


@dataclass(frozen=True)
class Batch:
    """The rows of one request.

    Attributes:
        rows: Serialized raw tf.Examples.
        numbers: Their positions in the split `eval`, from 0.
        predictions: The evaluation's predictions, [rows, ...] by output.
        transformed: The features that Transform wrote, [rows, ...] by name; only those of fixed shape.
    """

    rows: list[bytes]
    numbers: list[int]
    predictions: Arrays
    transformed: Arrays

    @functools.cached_property
    def examples(self) -> list[tf.train.Example]:
        """The raw rows, parsed."""
        return [tf.train.Example.FromString(row) for row in self.rows]

    def take(self, rows: Sequence[int]) -> Batch:
        """The rows at these positions."""
        positions = list(rows)
        return Batch(
            [self.rows[position] for position in positions],
            [self.numbers[position] for position in positions],
            {name: values[positions] for name, values in self.predictions.items()},
            {name: values[positions] for name, values in self.transformed.items()},
        )

    def renamed(self, output: str) -> Batch:
        """The same batch, where a single output, which an evaluation stores without a name, gets this one."""
        if set(self.predictions) != {""}:
            return self
        return replace(self, predictions={output: self.predictions[""]})


def read_batches(
    sample: Path, number: int, raw: Sequence[str], transformed: Sequence[str], spec: Mapping[str, Any]
) -> list[Batch]:
    """Reads the rows of an evaluation's sample.

    Args:
        sample: The file that the Evaluator wrote.
        number: The most rows to read.
        raw: The files of the raw split `eval`, sorted.
        transformed: The files that Transform made from them, in the same order.
        spec: The parsing spec of the transformed rows.

    Raises:
        DataError: The sample holds rows that are not in the split.
    """
    logs = list(_first(_logs(sample), number))
    places = _places({row for rows, _ in logs for row in rows}, raw, transformed)
    dense = {name: feature for name, feature in spec.items() if isinstance(feature, tf.io.FixedLenFeature)}
    batches = []
    for rows, predictions in logs:
        if missing := [row for row in rows if row not in places]:
            raise DataError(
                f"{sample} holds {len(missing)} rows that are not in {', '.join(raw)}.",
                "Evaluate again: --from Evaluator.",
            )
        parsed = tf.io.parse_example([places[row][1] for row in rows], dense) if dense else {}
        features = {name: tensor.numpy() for name, tensor in parsed.items()}
        log_batch = Batch(rows, [places[row][0] for row in rows], predictions, features)
        size = _rows_a_request(log_batch)
        batches += [log_batch.take(range(i, min(i + size, len(rows)))) for i in range(0, len(rows), size)]
    return batches


def _logs(sample: Path) -> Iterator[tuple[list[bytes], Arrays]]:
    """The rows and the predictions of each log."""
    for record in tf.data.TFRecordDataset(str(sample)).as_numpy_iterator():
        log = PredictionLog.FromString(record).predict_log
        [rows] = log.request.inputs.values()
        yield list(rows.string_val), {name: tf.make_ndarray(tensor) for name, tensor in log.response.outputs.items()}


def _first(logs: Iterable[tuple[list[bytes], Arrays]], number: int) -> Iterator[tuple[list[bytes], Arrays]]:
    for rows, predictions in logs:
        if number > 0:
            yield rows[:number], {name: values[:number] for name, values in predictions.items()}
        number -= len(rows)


def _places(rows: set[bytes], raw: Sequence[str], transformed: Sequence[str]) -> dict[bytes, tuple[int, bytes]]:
    """The position in the split, and the transformed row, of each of `rows`; the first where a row occurs repeatedly.

    Raises:
        DataError: The numbers of raw and transformed rows differ.
    """
    places: dict[bytes, tuple[int, bytes]] = {}
    pairs = (zip(_records(a), _records(b), strict=True) for a, b in zip(raw, transformed, strict=True))
    try:
        for number, (row, transformed_row) in enumerate(chain.from_iterable(pairs)):
            if row in rows:
                places.setdefault(row, (number, transformed_row))
    except ValueError as error:
        raise DataError(
            f"{', '.join(transformed)} does not have a row for each row of {', '.join(raw)}.",
            "Run with --from Transform.",
        ) from error
    return places


def _records(file: str) -> Iterator[bytes]:
    batches = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(READ_ROWS).as_numpy_iterator()
    return chain.from_iterable(batch.tolist() for batch in batches)


def _rows_a_request(batch: Batch) -> int:
    transformed = sum(values.nbytes for values in batch.transformed.values())
    row_bytes = max(sum(map(len, batch.rows)), transformed) / len(batch.rows)
    return max(1, min(REQUEST_ROWS, int(REQUEST_BYTES / max(row_bytes, 1))))
