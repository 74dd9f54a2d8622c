"""Gradient checkpointing: blocks whose activations are computed again in the backward pass (Chen et al., 2016,
arXiv:1604.06174)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import tensorflow as tf
import tf_keras

from components.errors import TrainingError


class Recompute(tf_keras.layers.Wrapper):
    """A layer that keeps only its inputs for the backward pass.

    Gradients are those of the wrapped layer, and so are the moving averages of batch normalization, which are updated
    once and not again when the block is recomputed.
    """

    def call(self, *inputs: tf.Tensor, training: bool | None = None) -> Any:
        """The wrapped layer's output."""
        recomputing = False

        def run(*tensors: tf.Tensor) -> Any:
            nonlocal recomputing
            # Traced twice: for the forward pass, then for the backward pass.
            with _frozen_averages(self.layer) if recomputing else nullcontext():
                result = self.layer(*tensors, **({} if training is None else {"training": training}))
            recomputing = True
            return result

        return tf.recompute_grad(run)(*inputs)


def wrap(model: tf_keras.Model, patterns: Sequence[str]) -> tf_keras.Model:
    """Returns the functional model with the blocks of these names recomputed; the weights are shared with `model`.

    Args:
        model: Functional, not compiled.
        patterns: Names of its layers; `*` stands for any letters. A block is a layer or a nested model.

    Raises:
        TrainingError: A pattern fits no layer, or a block draws random numbers, which would be others the second time.
    """
    names = [layer.name for layer in model.layers if not isinstance(layer, tf_keras.layers.InputLayer)]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise TrainingError(
                f"trainer.optimization.recompute names {pattern!r}, which fits none of the model's layers: "
                f"{', '.join(names)}.",
                "Name a layer or a nested model of the model that build_model returns.",
            )
    chosen = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}

    def exchange(layer: tf_keras.layers.Layer) -> tf_keras.layers.Layer:
        if layer.name not in chosen:
            return layer
        _check_not_random(layer)
        return Recompute(layer, name=layer.name)

    return tf_keras.models.clone_model(model, clone_function=exchange)


def _check_not_random(block: tf_keras.layers.Layer) -> None:
    for layer in block._flatten_layers():
        if hasattr(layer, "_random_generator"):
            raise TrainingError(
                f"trainer.optimization.recompute names {block.name!r}, whose layer {layer.name!r} "
                f"({type(layer).__name__}) draws random numbers; recomputed, they would be others.",
                "Move that layer out of the block, or do not recompute the block.",
            )


@contextmanager
def _frozen_averages(block: tf_keras.layers.Layer) -> Iterator[None]:
    """Lets no batch normalization in `block` update its moving averages while the block is traced."""
    normalizations = [
        layer for layer in block._flatten_layers() if isinstance(layer, tf_keras.layers.BatchNormalization)
    ]
    momenta = [layer.momentum for layer in normalizations]
    for layer in normalizations:
        layer.momentum = 1.0
    try:
        yield
    finally:
        for layer, momentum in zip(normalizations, momenta, strict=True):
            layer.momentum = momentum
