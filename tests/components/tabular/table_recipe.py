"""A table's model.py on the tiny recipe's rows: features as `features.transformed` names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.tabular import competition, models
from components.tabular.labels import Classes
from components.trainer.features import Feature
from components.trainer.own_training import Training

LABEL = Classes("y", ["no", "yes"])


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    return models.build_model(features, LABEL, params)


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    return models.compile_arguments(LABEL, params)


def train(training: Training) -> tf_keras.Model:
    return competition.train(training, LABEL)


def serving_outputs(outputs: Mapping[str, tf.Tensor], params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    return models.serving_outputs(outputs, LABEL, params)
