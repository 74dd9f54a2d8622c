"""A recipe of the smallest useful size: rows, schema, features and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

LABEL = "big"
SCHEMA = """
feature { name: "id" type: INT presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } } }
feature { name: "fare" type: FLOAT presence { min_count: 1 } value_count { min: 1 max: 1 } }
feature { name: "company" type: BYTES presence { min_count: 1 } value_count { min: 1 max: 1 } }
feature {
  name: "tips" type: FLOAT presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  not_in_environment: "SERVING"
}
default_environment: "TRAINING"
default_environment: "SERVING"
"""


def rows(start: int, number: int) -> list[dict[str, Any]]:
    """Rows that differ in `id`; fare and company are sometimes missing."""
    return [
        {
            "id": i,
            "fare": None if i % 11 == 0 else float(i % 40),
            "company": None if i % 7 == 0 else ("Blue", "Red", "Green")[i % 3],
            "tips": float(i % 10),
        }
        for i in range(start, start + number)
    ]


TRAIN, EVAL = rows(0, 120), rows(120, 30)


def preprocessing_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """An id, a number, two categories and the label, each of shape [batch]."""
    fare = _dense(inputs["fare"], -1.0)
    return {
        "id": tf.reshape(inputs["id"], [-1]),
        "fare": tft.scale_to_z_score(fare),
        "fare_bucket": tft.bucketize(fare, 4),
        "company": tft.compute_and_apply_vocabulary(_dense(inputs["company"], "none"), num_oov_buckets=1),
        LABEL: tf.cast(tf.reshape(inputs["tips"], [-1]) > 4.0, tf.int64),
    }


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """A logistic regression on all features but the id."""
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}
    numbers = tf.stack([tf.cast(inputs[name], tf.float32) for name in ("fare", "fare_bucket", "company")], axis=1)
    name, dtype = params.get("name", "score"), params.get("dtype", "float32")
    score = tf_keras.layers.Dense(1, "sigmoid", name=name, dtype=dtype)
    return tf_keras.Model(inputs, score(numbers))


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Plain gradient descent."""
    return {"optimizer": tf_keras.optimizers.SGD(0.01), "loss": "binary_crossentropy"}


def _dense(values: tf.SparseTensor, default: float | str) -> tf.Tensor:
    column = tf.SparseTensor(values.indices, values.values, [values.dense_shape[0], 1])
    return tf.reshape(tf.sparse.to_dense(column, default), [-1])
