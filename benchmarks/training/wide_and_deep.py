"""The taxi recipe's model.py with timed epochs; the Trainer gets this module instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tf_keras

from benchmarks.training.timing import timed
from components.trainer.features import Feature
from recipes.taxi import model as taxi
from recipes.taxi.model import compile_arguments

__all__ = ["build_model", "compile_arguments"]


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the recipe's model, timed."""
    return timed(taxi.build_model(features, params))
