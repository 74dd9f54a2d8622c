"""The interrupted recipe with what is hard to take up again: dropout, augmentation, an optimizer with moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import interrupted_recipe
import tensorflow as tf
import tf_keras


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """Two layers with dropout and batch normalization."""
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}
    numbers = tf.stack([tf.cast(inputs[name], tf.float32) for name in ("fare", "fare_bucket", "company")], axis=1)
    hidden = tf_keras.layers.Dense(8, "relu", name="hidden")(numbers)
    hidden = tf_keras.layers.BatchNormalization(name="normalized")(hidden)
    hidden = tf_keras.layers.Dropout(0.3, name="first")(hidden)
    hidden = tf_keras.layers.GaussianNoise(0.1, name="noise")(hidden)
    score = tf_keras.layers.Dense(1, "sigmoid", name="score", dtype="float32")(hidden)
    model = interrupted_recipe.Interrupted(inputs, score)
    model.wanted = dict(params)
    return model


def augment(features: Mapping[str, tf.Tensor], seed: tf.Tensor, params: Mapping[str, Any]) -> Mapping[str, tf.Tensor]:
    """Noise on the fare."""
    fare = features["fare"]
    return {"fare": fare + tf.random.stateless_normal(tf.shape(fare), seed, stddev=0.1)}


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Adam at a high rate: the validation loss goes up and down."""
    auc = tf_keras.metrics.AUC(name="auc")
    return {"optimizer": tf_keras.optimizers.Adam(0.1), "loss": "binary_crossentropy", "metrics": [auc]}
