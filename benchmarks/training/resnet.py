"""The cifar10 recipe's model.py with its epochs timed; the trainer is given this module in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tf_keras

from benchmarks.training.timing import timed
from components.trainer.features import Feature
from recipes.cifar10 import model as cifar10
from recipes.cifar10.model import augment, compile_arguments, serving_outputs

__all__ = ["augment", "build_model", "compile_arguments", "serving_outputs"]


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the recipe's model, timed."""
    return timed(cifar10.build_model(features, params))
