"""Replays the requests that a SavedModel brings along, so that no client pays for the first computation.

They lie in `assets.extra/tf_serving_warmup_requests`, a TFRecord of PredictionLogs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving import records
from serving.errors import Code, ServingError, from_tensorflow

if TYPE_CHECKING:
    from serving.servable import Servable

REQUESTS = Path("assets.extra", "tf_serving_warmup_requests")
LARGEST_NUMBER = 1000
EXAMPLES_INPUT = "inputs"


def replay(servable: Servable, path: Path) -> int:
    """Replays a version's recorded requests.

    Args:
        servable: The version.
        path: The SavedModel's folder.

    Returns:
        How many requests were replayed; 0 where none are recorded.

    Raises:
        ServingError: A record cannot be read or its request fails: then the version must not serve. Or there are more
            than 1000.
    """
    file = path / REQUESTS
    if not file.is_file():
        return 0
    number = 0
    for number, record in enumerate(_records(file), start=1):
        if number > LARGEST_NUMBER:
            message = f"Number of warmup records exceeds the maximum ({LARGEST_NUMBER}) at {file}"
            raise ServingError(Code.INVALID_ARGUMENT, message)
        try:
            _run(servable, PredictionLog.FromString(record))
        except DecodeError as error:
            message = f"Failed to parse warmup record {number} from {file}: {error}"
            raise ServingError(Code.INVALID_ARGUMENT, message) from error
        except ServingError as error:
            raise ServingError(error.code, f"Warmup record {number} from {file} failed: {error.message}") from error
    return number


def _records(file: Path) -> Iterator[bytes]:
    try:
        yield from records.read(file)
    except tf.errors.OpError as error:
        refusal = from_tensorflow(error)
        raise ServingError(refusal.code, f"Failed to read warmup records from {file}: {refusal.message}") from error


def _run(servable: Servable, log: PredictionLog) -> None:
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        _predict(servable, log.predict_log.request)
    elif kind == "classify_log":
        _examples(servable, log.classify_log.request.model_spec, log.classify_log.request.input)
    elif kind == "regress_log":
        _examples(servable, log.regress_log.request.model_spec, log.regress_log.request.input)
    elif kind == "multi_inference_log":
        request = log.multi_inference_log.request
        for task in request.tasks:
            _examples(servable, task.model_spec, request.input)
    else:
        raise ServingError(Code.UNIMPLEMENTED, f"Unsupported log_type for warmup: {kind}")


def _predict(servable: Servable, request: PredictRequest) -> None:
    try:
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
    except (TypeError, ValueError) as error:
        raise ServingError(Code.INVALID_ARGUMENT, f"tensor parsing error: {error}") from error
    servable.run(_signature_name(request.model_spec), inputs, request.output_filter)


def _examples(servable: Servable, model: ModelSpec, given: Input) -> None:
    context = given.example_list_with_context.context.SerializeToString()
    examples = given.example_list_with_context.examples or given.example_list.examples
    # Messages that follow one another are merged when they are read.
    serialized = [context + example.SerializeToString() for example in examples]
    servable.run(_signature_name(model), {EXAMPLES_INPUT: np.array(serialized, dtype=object)})


def _signature_name(model: ModelSpec) -> str:
    return str(model.signature_name) or "serving_default"
