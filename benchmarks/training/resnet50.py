"""ResNet-50 on images enlarged to 224 pixels, trained as its paper does (He et al., 2015, arXiv:1512.03385), timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tf_keras

from benchmarks.training.resnet import augment, build_model, serving_outputs
from recipes.cifar10 import model as cifar10

__all__ = ["augment", "build_model", "compile_arguments", "serving_outputs"]

LEARNING_RATE, MOMENTUM = 0.1, 0.9


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the recipe's arguments of `model.compile` with the paper's optimizer."""
    return {
        **cifar10.compile_arguments(params),
        "optimizer": tf_keras.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM),
    }
