"""Replays the requests recorded in a SavedModel, so that no client pays for the first computation.

They are in `assets.extra/tf_serving_warmup_requests`, a TFRecord of PredictionLogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.python.lib.io.tf_record import tf_record_random_reader
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving.errors import Code, ServingError, from_tensorflow, invalid
from serving.messages import INPUTS, serialized_examples
from serving.protocol import DEFAULT_SIGNATURE

REQUESTS = Path("assets.extra", "tf_serving_warmup_requests")
LARGEST_NUMBER = 1000

# Runs a signature, given its name, its inputs and the outputs to compute: `Servable.run`.
Run = Callable[..., Any]


def read_records(file: Path) -> Iterator[bytes]:
    """Yields the records of an uncompressed file; `tf.data` would first build a graph, which takes many times longer.

    Raises:
        tf.errors.OpError: The file is missing or broken.
    """
    reader, offset = tf_record_random_reader(str(file)), 0
    while True:
        try:
            record, offset = reader.read(offset)
        except IndexError:
            return
        yield record


def replay(run: Run, path: Path) -> int:
    """Replays a version's recorded requests.

    Args:
        run: Runs a signature of the version.
        path: The SavedModel's folder.

    Returns:
        How many requests were replayed; 0 if none are recorded.

    Raises:
        ServingError: A record cannot be read or its request fails, so the version must not be served; or there are more
            than 1000.
    """
    file = path / REQUESTS
    if not file.is_file():
        return 0
    number = 0
    for number, record in enumerate(_records(file), start=1):
        if number > LARGEST_NUMBER:
            message = f"Number of warmup records exceeds the maximum ({LARGEST_NUMBER}) at {file}"
            raise invalid(message)
        try:
            _replay_one(run, PredictionLog.FromString(record))
        except DecodeError as error:
            message = f"Failed to parse warmup record {number} from {file}: {error}"
            raise invalid(message) from error
        except ServingError as error:
            raise ServingError(error.code, f"Warmup record {number} from {file} failed: {error.message}") from error
    return number


def _records(file: Path) -> Iterator[bytes]:
    try:
        yield from read_records(file)
    except tf.errors.OpError as error:
        refusal = from_tensorflow(error)
        raise ServingError(refusal.code, f"Failed to read warmup records from {file}: {refusal.message}") from error


def _replay_one(run: Run, log: PredictionLog) -> None:
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        _predict(run, log.predict_log.request)
    elif kind == "classify_log":
        _examples(run, log.classify_log.request.model_spec, log.classify_log.request.input)
    elif kind == "regress_log":
        _examples(run, log.regress_log.request.model_spec, log.regress_log.request.input)
    elif kind == "multi_inference_log":
        request = log.multi_inference_log.request
        for task in request.tasks:
            _examples(run, task.model_spec, request.input)
    else:
        raise ServingError(Code.UNIMPLEMENTED, f"Unsupported log_type for warmup: {kind}")


def _predict(run: Run, request: PredictRequest) -> None:
    try:
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
    except (TypeError, ValueError) as error:
        raise invalid(f"tensor parsing error: {error}") from error
    run(_signature_name(request.model_spec), inputs, request.output_filter)


def _examples(run: Run, model: ModelSpec, examples: Input) -> None:
    run(_signature_name(model), {INPUTS: np.array(serialized_examples(examples), object)})


def _signature_name(model: ModelSpec) -> str:
    return str(model.signature_name) or DEFAULT_SIGNATURE
