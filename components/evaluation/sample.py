"""A small sample of the candidate's predictions, kept with the evaluation: what serving must answer to those rows.

It is a TFRecord of TensorFlow Serving's PredictionLogs, one row each: the request and its answer.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from components.evaluation.keeping import Keeper

SAMPLE_FILE = "sampled_predictions.tfrecord"
"""The sample, beside TFMA's own files."""

INPUT = "examples"
SIGNATURE = "serving_default"

# The digest by which it is chosen, the row, its answer.
Choice = tuple[bytes, bytes, dict[str, Any]]


def keeper(path: str, rows: int, model: str | None) -> Keeper:
    """Keeps a sample.

    Args:
        path: The file to write.
        rows: How many rows it gets at most.
        model: Whose predictions are kept, where there are those of several; see `chosen`.
    """
    merge = beam.CombineFn.from_callable(partial(_smallest, rows=rows))
    return Keeper(partial(chosen, model=model, rows=rows), merge, partial(_write, path=path))


def chosen(batch: Mapping[str, Any], model: str | None, rows: int) -> list[Choice]:
    """The rows of a batch with the smallest digests: a random choice that does not depend on order or batches.

    Args:
        batch: TFMA's extracts: `input` holds the serialized rows, `predictions` one array or one an output, or, with
            `model`, such a thing by the models' names.
        model: Whose predictions, where there are those of several.
        rows: How many at most.
    """
    serialized = np.asarray(batch[tfma.INPUT_KEY]).ravel()
    predictions = batch[tfma.PREDICTIONS_KEY] if model is None else batch[tfma.PREDICTIONS_KEY][model]
    outputs = predictions if isinstance(predictions, Mapping) else {"": predictions}
    digests = ((hashlib.sha256(row).digest(), position) for position, row in enumerate(serialized))
    return [
        (digest, serialized[position], {name: np.asarray(values)[position] for name, values in outputs.items()})
        for digest, position in heapq.nsmallest(rows, digests)
    ]


def _smallest(chosen_of_batches: Iterable[list[Choice]], rows: int) -> list[Choice]:
    every = (choice for choices in chosen_of_batches for choice in choices)
    return heapq.nsmallest(rows, every, key=lambda choice: choice[:2])


def _write(sample: list[Choice], path: str) -> None:
    with tf.io.TFRecordWriter(path) as writer:
        for _, row, outputs in sample:
            writer.write(_log(row, outputs).SerializeToString(deterministic=True))


def _log(row: bytes, outputs: Mapping[str, Any]) -> PredictionLog:
    """One row as a request and its answer; an output without a name is the model's only one."""
    log = PredictionLog()
    request, response = log.predict_log.request, log.predict_log.response
    request.model_spec.signature_name = SIGNATURE
    request.inputs[INPUT].CopyFrom(tf.make_tensor_proto([row]))
    for name, value in outputs.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(np.asarray(value)[np.newaxis]))
    return log
