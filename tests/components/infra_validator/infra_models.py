"""SavedModels of one operation, and what an Evaluator would have kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from components.infra_validator.sample import Batch


class Scorer(tf.Module):
    """`score` = x * factor, `label` = the name of its sign, `twice` = [x, x]."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = tf.Variable(factor)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def __call__(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([], tf.float32)})["x"]
        label = tf.where(x < 0, "minus", "plus")
        return {"score": x * self.factor, "label": label, "twice": tf.stack([x, x], axis=1)}


def write(path: Path, factor: float = 3.0) -> Path:
    """Writes a Scorer."""
    module = Scorer(factor)
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.__call__})
    return path


def row(x: float) -> bytes:
    """A serialized tf.Example."""
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(x)
    return bytes(example.SerializeToString())


def seen(values: Sequence[float], factor: float = 3.0) -> Batch:
    """What an Evaluator would have kept of a Scorer; the rows are the tenth of the split and those after it."""
    x = np.array(values, np.float32)
    labels = np.array([b"minus" if value < 0 else b"plus" for value in values], object)
    predictions = {"score": x * np.float32(factor), "label": labels, "twice": np.stack([x, x], 1)}
    return Batch([row(value) for value in values], list(range(10, 10 + len(x))), predictions, {})


def log(batch: Batch) -> Any:
    """The same as a PredictionLog."""
    made = PredictionLog()
    request, response = made.predict_log.request, made.predict_log.response
    request.model_spec.signature_name = "serving_default"
    request.inputs["examples"].CopyFrom(tf.make_tensor_proto(batch.rows))
    for name, values in batch.predictions.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(values))
    return made
