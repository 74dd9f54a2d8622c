"""The sample of the candidate's predictions: what serving must answer for those rows.

It is a TFRecord of TensorFlow Serving's PredictionLogs, which are requests and their answers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from components.evaluation.recording import DIGESTS_KEY, Recorder

INPUT = "examples"
SIGNATURE = "serving_default"

LOG_ROWS = 512
MAX_BYTES = 64 * 2**20
"""The most rows per log, and the most bytes of all rows together, so that there are fewer rows if they hold images."""

# A row's digest, the row, and its answer.
Choice = tuple[int, bytes, dict[str, Any]]


def sample_recorder(path: str, rows: int, model: str | None) -> Recorder:
    """Records a sample.

    Args:
        path: The file to write.
        rows: The most rows to record.
        model: The model whose predictions are recorded, if there are several; see `sample_rows`.
    """
    merge = beam.CombineFn.from_callable(partial(smallest, rows=rows))
    return Recorder(partial(sample_rows, model=model, rows=rows), merge, partial(_write_sample, path=path))


def sample_rows(batch: Mapping[str, Any], model: str | None, rows: int) -> list[Choice]:
    """The rows of a batch with the smallest digests: a random choice that does not depend on order or batches.

    Args:
        batch: TFMA's extracts with the rows' digests: `input` holds the serialized rows; `predictions` holds an array,
            or arrays by output, or, with `model`, either of these by the models' names.
        model: The model whose predictions to take, if there are several.
        rows: The most rows to choose.
    """
    serialized = np.asarray(batch[tfma.INPUT_KEY]).ravel()
    predictions = batch[tfma.PREDICTIONS_KEY] if model is None else batch[tfma.PREDICTIONS_KEY][model]
    outputs = predictions if isinstance(predictions, Mapping) else {"": predictions}
    arrays = {name: np.asarray(values) for name, values in outputs.items()}
    digests = batch[DIGESTS_KEY]
    return [
        (int(digests[position]), serialized[position], {name: values[position] for name, values in arrays.items()})
        for position in np.argsort(digests, kind="stable")[:rows]
    ]


def smallest(chosen_of_batches: Iterable[list[Choice]], rows: int, max_bytes: int = MAX_BYTES) -> list[Choice]:
    """The choices with the smallest digests, at most `rows` of them, with at most `max_bytes`."""
    every = (choice for choices in chosen_of_batches for choice in choices)
    chosen = heapq.nsmallest(rows, every, key=lambda choice: choice[:2])
    sizes = accumulate(len(row) for _, row, _ in chosen)
    return [choice for choice, size in zip(chosen, sizes, strict=True) if size <= max_bytes]


def _write_sample(sample: list[Choice], path: str) -> None:
    """Writes rows in the order of their digests, as logs of several rows whose answers have the same shapes."""
    with tf.io.TFRecordWriter(path) as writer:
        for _, alike in groupby(
            sample, key=lambda choice: {name: np.shape(value) for name, value in choice[2].items()}
        ):
            rows = list(alike)
            for start in range(0, len(rows), LOG_ROWS):
                log = _prediction_log(rows[start : start + LOG_ROWS])
                writer.write(log.SerializeToString(deterministic=True))


def _prediction_log(chosen: Sequence[Choice]) -> PredictionLog:
    """Rows as a request and its answer; an output without a name is the model's single output."""
    log = PredictionLog()
    request, response = log.predict_log.request, log.predict_log.response
    request.model_spec.signature_name = SIGNATURE
    request.inputs[INPUT].CopyFrom(tf.make_tensor_proto([row for _, row, _ in chosen]))
    for name in chosen[0][2]:
        values = np.stack([np.asarray(outputs[name]) for _, _, outputs in chosen])
        response.outputs[name].CopyFrom(tf.make_tensor_proto(values))
    return log
