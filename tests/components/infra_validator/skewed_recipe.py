"""A recipe whose features depend on the environment in which they are traced, and a model of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

LABEL = "big"
NUMBERS = ("scaled", "filled", "precise", "centered")
FACTOR = float(os.environ.get("FACTOR", "1"))
DEFAULT = float(os.environ.get("DEFAULT", "-1"))
KIND = tf.as_dtype(os.environ.get("KIND", "float64"))
CENTERED = "CENTERED" in os.environ


def preprocessing_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Four features of the fare and one of the company, and the label, each of shape [batch]."""
    fare = _dense(inputs["fare"], 0.0) / 7
    # So far from zero float32 has no fractions.
    far = tf.cast(fare, KIND) + tf.constant(1e8, KIND)
    return {
        "scaled": fare * FACTOR,
        "filled": _dense(inputs["fare"], DEFAULT),
        "precise": tf.cast(tf.math.floormod(far, tf.constant(10, KIND)), tf.float32),
        "centered": fare - tf.reduce_mean(fare) if CENTERED else fare,
        "company": tft.compute_and_apply_vocabulary(_dense(inputs["company"], "none"), vocab_filename="companies"),
        LABEL: tf.cast(tf.reshape(inputs["tips"], [-1]) > 4.0, tf.int64),
    }


def model() -> tf_keras.Model:
    """A logistic regression on everything, with the same weight for each."""
    inputs = {name: tf_keras.Input((), name=name) for name in NUMBERS}
    inputs["company"] = tf_keras.Input((), name="company", dtype="int64")
    numbers = tf.stack([tf.cast(tensor, tf.float32) / 10 for tensor in inputs.values()], axis=1)
    return tf_keras.Model(inputs, tf_keras.layers.Dense(1, "sigmoid", kernel_initializer="ones", name="score")(numbers))


def _dense(values: tf.SparseTensor, default: float | str) -> tf.Tensor:
    column = tf.SparseTensor(values.indices, values.values, [values.dense_shape[0], 1])
    return tf.reshape(tf.sparse.to_dense(column, default), [-1])
