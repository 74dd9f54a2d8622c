"""The tiny recipe with a subclass of tf_keras.Model, whose `call` takes the features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import interrupted_recipe
import tensorflow as tf
import tf_keras


class Tower(tf_keras.Model):
    """Two hidden layers with what a training has to keep: batch normalization, dropout, an added loss.

    Args:
        heads: Names of the outputs; without any, the model returns one tensor.
    """

    def __init__(self, heads: Sequence[str] = (), **arguments: Any) -> None:
        super().__init__(**arguments)
        self.heads = list(heads)
        self.companies = tf_keras.layers.Embedding(5, 2, name="companies")
        self.first = tf_keras.layers.Dense(8, "relu", name="first")
        self.normalize = tf_keras.layers.BatchNormalization(name="normalize")
        self.blocks = [tf_keras.layers.Dense(8, "relu", name=f"block_{number}") for number in (1, 2)]
        self.penalty = tf_keras.layers.ActivityRegularization(l2=1e-3, name="penalty", dtype="float32")
        self.dropout = tf_keras.layers.Dropout(0.3, name="dropout")
        self.scores = [tf_keras.layers.Dense(1, "sigmoid", name=n, dtype="float32") for n in heads or ("score",)]

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> Any:
        """The chance of a big tip, float32 [batch, 1], or one by head."""
        fare = tf.cast(inputs["fare"], self.compute_dtype)[:, None]
        hidden = self.normalize(self.first(tf.concat([self.companies(inputs["company"]), fare], axis=1)), training)
        for block in self.blocks:
            hidden = block(hidden)
        hidden = self.dropout(self.penalty(hidden), training)
        found = [score(hidden) for score in self.scores]
        return dict(zip(self.heads, found, strict=True)) if self.heads else found[0]

    def get_config(self) -> dict[str, Any]:
        """Keras's hook."""
        return {**super().get_config(), "heads": self.heads}


class Interrupted(interrupted_recipe.WithInterruption, Tower):
    """The same, whose training is interrupted once."""


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """A Tower; `heads` in params gives it several outputs, `how` has it interrupted."""
    if "how" not in params:
        return Tower(params.get("heads", ()))
    model = Interrupted()
    model.wanted = dict(params)
    return model


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Adam, whose moments a resumed training needs."""
    auc = tf_keras.metrics.AUC(name="auc")
    return {"optimizer": tf_keras.optimizers.Adam(0.05), "loss": "binary_crossentropy", "metrics": [auc]}
