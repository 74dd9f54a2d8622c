"""The rows that the evaluation kept: predictions, positions in the split `eval`, and what Transform made of them."""

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
"""What a request holds at most; as JSON it is several times as large, and the server takes 64 MiB."""

READ_ROWS = 4_096


@dataclass(frozen=True)
class Batch:
    """Rows that are asked about in one request.

    Attributes:
        rows: Serialized raw tf.Examples.
        numbers: Their positions in the split `eval`, from 0.
        predictions: What the evaluation's batches gave, [rows, ...] by output.
        transformed: What Transform wrote, [rows, ...] by feature; only features of fixed shape.
    """

    rows: list[bytes]
    numbers: list[int]
    predictions: Arrays
    transformed: Arrays

    @functools.cached_property
    def examples(self) -> list[tf.train.Example]:
        """The raw rows, parsed."""
        return [tf.train.Example.FromString(row) for row in self.rows]

    def take(self, which: Sequence[int]) -> Batch:
        """The rows at these positions."""
        positions = list(which)
        return Batch(
            [self.rows[position] for position in positions],
            [self.numbers[position] for position in positions],
            {name: values[positions] for name, values in self.predictions.items()},
            {name: values[positions] for name, values in self.transformed.items()},
        )

    def renamed(self, output: str) -> Batch:
        """The same; an only output, which an evaluation keeps without a name, has this one."""
        if set(self.predictions) != {""}:
            return self
        return replace(self, predictions={output: self.predictions[""]})


def read_batches(
    sample: Path, number: int, raw: Sequence[str], transformed: Sequence[str], spec: Mapping[str, Any]
) -> list[Batch]:
    """The rows of an evaluation's sample.

    Args:
        sample: The file that the Evaluator wrote.
        number: How many rows at most.
        raw: The files of the raw split `eval`, sorted.
        transformed: Those that Transform made of them, in the same order.
        spec: How to parse these.

    Raises:
        DataError: The rows are not those of the split.
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
        whole = Batch(rows, [places[row][0] for row in rows], predictions, features)
        size = _rows_a_request(whole)
        batches += [whole.take(range(i, min(i + size, len(rows)))) for i in range(0, len(rows), size)]
    return batches


def _logs(sample: Path) -> Iterator[tuple[list[bytes], Arrays]]:
    """Rows and predictions of each log."""
    for record in tf.data.TFRecordDataset(str(sample)).as_numpy_iterator():
        log = PredictionLog.FromString(record).predict_log
        [rows] = log.request.inputs.values()
        yield list(rows.string_val), {name: tf.make_ndarray(tensor) for name, tensor in log.response.outputs.items()}


def _first(logs: Iterable[tuple[list[bytes], Arrays]], number: int) -> Iterator[tuple[list[bytes], Arrays]]:
    for rows, predictions in logs:
        if number > 0:
            yield rows[:number], {name: values[:number] for name, values in predictions.items()}
        number -= len(rows)


def _places(wanted: set[bytes], raw: Sequence[str], transformed: Sequence[str]) -> dict[bytes, tuple[int, bytes]]:
    """For each wanted row its position in the split, and the transformed row; of equal rows the first.

    Raises:
        DataError: There are more raw than transformed rows, or fewer.
    """
    places: dict[bytes, tuple[int, bytes]] = {}
    pairs = (zip(_records(one), _records(other), strict=True) for one, other in zip(raw, transformed, strict=True))
    try:
        for number, (row, made) in enumerate(chain.from_iterable(pairs)):
            if row in wanted:
                places.setdefault(row, (number, made))
    except ValueError as error:
        raise DataError(
            f"{', '.join(transformed)} has not a row for each row of {', '.join(raw)}.", "Run with --from Transform."
        ) from error
    return places


def _records(file: str) -> Iterator[bytes]:
    batches = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(READ_ROWS).as_numpy_iterator()
    return chain.from_iterable(batch.tolist() for batch in batches)


def _rows_a_request(batch: Batch) -> int:
    transformed = sum(values.nbytes for values in batch.transformed.values())
    row_bytes = max(sum(map(len, batch.rows)), transformed) / len(batch.rows)
    return max(1, min(REQUEST_ROWS, int(REQUEST_BYTES / max(row_bytes, 1))))
