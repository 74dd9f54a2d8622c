"""One layer that two heads share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.features import Feature


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns a model with the outputs `tip`, a chance, and `payment`, the chances of three classes."""
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}
    numbers = tf.stack([tf.cast(inputs[name], tf.float32) for name in sorted(inputs)], axis=1)
    hidden = tf_keras.layers.Dense(16, "relu")(numbers)
    tip = tf_keras.layers.Dense(1, "sigmoid", name="tip")(hidden)
    payment = tf_keras.layers.Dense(3, "softmax", name="payment")(hidden)
    return tf_keras.Model(inputs, {"tip": tip, "payment": payment})


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """A loss and a metric for each head."""
    return {
        "optimizer": tf_keras.optimizers.Adam(0.01),
        "loss": {"tip": "binary_crossentropy", "payment": "sparse_categorical_crossentropy"},
        "loss_weights": {"tip": 1.0, "payment": 0.5},
        "metrics": {"tip": tf_keras.metrics.AUC(name="auc"), "payment": "accuracy"},
    }
