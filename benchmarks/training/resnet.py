"""The cifar10 recipe's model.py with timed epochs; the Trainer gets this module instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tf_keras

from benchmarks.training.timing import timed
from components.trainer.features import Feature
from recipes.cifar10 import model as cifar10
from recipes.cifar10.model import augment, serving_outputs

__all__ = ["augment", "build_model", "compile_arguments", "serving_outputs"]

BACKBONE_LEARNING_RATE, BACKBONE_MOMENTUM = 0.1, 0.9


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the recipe's model, timed."""
    return timed(cifar10.build_model(features, params))


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the recipe's arguments; a backbone, ResNet-50, is trained as in its paper (arXiv:1512.03385)."""
    arguments = dict(cifar10.compile_arguments(params))
    if "backbone" in params:
        arguments["optimizer"] = tf_keras.optimizers.SGD(BACKBONE_LEARNING_RATE, momentum=BACKBONE_MOMENTUM)
    return arguments
