"""The models that the benchmarks serve, and their speed without a server. Runs in processes of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving.models import servable
from serving.models.warm_up import REQUESTS

INPUTS = 16
WARM_UP_RUNS = 200
SIGNATURE = "serving_default"


def write(path: str, widths: Sequence[int], keras_path: str | None = None) -> str:
    """Writes a multi-layer perceptron as a SavedModel; returns the name of its input.

    Args:
        path: The SavedModel's folder.
        widths: The widths of its hidden layers; it takes 16 numbers and returns one.
        keras_path: Where to write it as a Keras model too, or None.
    """
    tf_keras.utils.set_random_seed(1)
    layers = [tf_keras.layers.Dense(width, activation="relu") for width in widths]
    model = tf_keras.Sequential([tf_keras.Input([INPUTS]), *layers, tf_keras.layers.Dense(1)])
    tf.saved_model.save(model, path)
    _write_warm_up(Path(path))
    if keras_path is not None:
        model.save(keras_path)
    [name] = tf.saved_model.load(path).signatures[SIGNATURE].structured_input_signature[1]
    return str(name)


def _write_warm_up(path: Path) -> None:
    """Writes one warm-up request of zeros; the pipeline's Trainer writes some with real rows."""
    [name] = tf.saved_model.load(str(path)).signatures[SIGNATURE].structured_input_signature[1]
    log = PredictionLog()
    log.predict_log.request.inputs[name].CopyFrom(tf.make_tensor_proto(np.zeros([1, INPUTS], np.float32)))
    file = path / REQUESTS
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(log.SerializeToString())


def write_request(path: str, model: str, name: str, row: Sequence[float]) -> None:
    """Writes a serialized PredictRequest for one row."""
    request = PredictRequest(model_spec={"name": model})
    request.inputs[name].CopyFrom(tf.make_tensor_proto([row], tf.float32))
    Path(path).write_bytes(request.SerializeToString())


def signature_rate(path: str, name: str, row: Sequence[float], seconds: float) -> float:
    """Calls per second of `tf.saved_model.load(...).signatures[...]`, from array to array, in one thread."""
    call = tf.saved_model.load(path).signatures[SIGNATURE]
    inputs = np.array([row], np.float32)
    return _rate(lambda: [tensor.numpy() for tensor in call(**{name: tf.constant(inputs)}).values()], 1, seconds)


def session_rate(path: str, name: str, row: Sequence[float], seconds: float, threads: int) -> float:
    """Calls per second of the model as the server loads it, from this many threads."""
    loaded = servable.load("model", 1, Path(path))
    inputs = {name: np.array([row], np.float32)}
    return _rate(lambda: loaded.run(SIGNATURE, inputs), threads, seconds)


def _rate(call: Callable[[], Any], threads: int, seconds: float) -> float:
    for _ in range(WARM_UP_RUNS):
        call()
    began = time.perf_counter()

    def count(_: int) -> int:
        number = 0
        while time.perf_counter() - began < seconds:
            call()
            number += 1
        return number

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(count, range(threads))) / (time.perf_counter() - began)


class Several(tf.Module):
    """The target of malformed requests: numbers, strings, several inputs, parsed Examples; y = x / 2 + 2."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def predict(self, x: Any) -> dict[str, Any]:
        return {"y": x * 0.5 + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def upper(self, words: Any) -> dict[str, Any]:
        return {"upper": tf.strings.upper(words), "raw_bytes": words}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def number(self, words: Any) -> dict[str, Any]:
        return {"number": tf.strings.to_number(words)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.bool, "flag"),
            tf.TensorSpec([None], tf.uint8, "small"),
            tf.TensorSpec([None], tf.int64, "large"),
            tf.TensorSpec([None], tf.double, "double"),
        ]
    )
    def types(self, flag: Any, small: Any, large: Any, double: Any) -> dict[str, Any]:
        return {"sum": tf.where(flag, double + tf.cast(small, tf.double), tf.cast(large, tf.double))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: Any) -> dict[str, Any]:
        return {"outputs": self._x(inputs) * 0.5 + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: Any) -> dict[str, Any]:
        x = self._x(inputs)
        return {"scores": tf.stack([1.0 - x, x], axis=1)}

    def _x(self, serialized: Any) -> Any:
        return tf.io.parse_example(serialized, {"x": tf.io.FixedLenFeature([], tf.float32)})["x"]


def save_several(path: Path) -> None:
    """Writes the model with several signatures as a SavedModel."""
    module = Several()
    names = ("upper", "number", "types", "regress", "classify")
    signatures = {name: getattr(module, name) for name in names}
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.predict, **signatures})
