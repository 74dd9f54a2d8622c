"""A model of two heads: `odds`, a chance, and `kind`, the chances of `params["classes"]` classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """The outputs as a dict, or as a list where `params` say so."""
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}
    numbers = tf.stack([tf.cast(inputs["fare"], tf.float32), tf.cast(inputs["company"], tf.float32)], axis=1)
    odds = tf_keras.layers.Dense(1, "sigmoid", name="odds")(numbers)
    kind = tf_keras.layers.Dense(params.get("classes", 4), "softmax", name="kind")(numbers)
    return tf_keras.Model(inputs, [odds, kind] if params.get("listed") else {"odds": odds, "kind": kind})


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """A loss and metrics for each head."""
    losses = {"odds": "binary_crossentropy", "kind": "sparse_categorical_crossentropy"}
    metrics = {"odds": tf_keras.metrics.AUC(name="auc"), "kind": "accuracy"}
    return {"optimizer": tf_keras.optimizers.SGD(0.1), "loss": losses, "metrics": metrics, **params.get("compile", {})}
