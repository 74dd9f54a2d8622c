"""Gradient checkpointing: blocks whose activations are computed again in the backward pass (Chen et al., 2016,
arXiv:1604.06174)."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
import tf_keras

from components.errors import TrainingError


def recompute_blocks(model: tf_keras.Model, patterns: Sequence[str]) -> None:
    """Lets blocks of a functional model keep only their inputs for the backward pass.

    Gradients are those of the blocks as they were, and so are the moving averages of batch normalization, which are
    updated once and not again when a block is recomputed.

    Args:
        model: Functional, not compiled.
        patterns: Names of its layers; `*` stands for any letters. A block is a layer or a nested model.

    Raises:
        TrainingError: A pattern fits no layer, or a block draws random numbers, which would be others the second time.
    """
    blocks = {layer.name: layer for layer in model.layers if not isinstance(layer, tf_keras.layers.InputLayer)}
    for pattern in patterns:
        chosen = fnmatch.filter(blocks, pattern)
        if not chosen:
            raise TrainingError(
                f"trainer.optimization.recompute names {pattern!r}, which fits none of the model's layers: "
                f"{', '.join(blocks)}.",
                "Name a layer or a nested model of the model that build_model returns.",
            )
        for name in chosen:
            _check_not_random(blocks[name])
            # Keras looks the method up whenever the layer is called; a layer that wraps the block would have to be
            # put into the model by cloning it.
            blocks[name].call = functools.partial(_recomputed, blocks[name], type(blocks[name]).call)


def undo(model: tf_keras.Model) -> None:
    """Gives all blocks their own `call` back: an exported model has no backward pass, and TF Lite knows none."""
    for layer in model.layers:
        layer.__dict__.pop("call", None)


def _recomputed(block: tf_keras.layers.Layer, original: Callable[..., Any], inputs: Any, **arguments: Any) -> Any:
    """The block's `call`, recomputed."""
    recomputing = False

    def run(*tensors: tf.Tensor) -> Any:
        nonlocal recomputing
        again = tf.nest.pack_sequence_as(inputs, tensors)
        # Traced twice: for the forward pass, then for the backward pass, which is outside of Keras's call of the block
        # and so has to call it anew, or its layers would know neither of training nor of the dtype policy.
        if recomputing:
            with _as_it_was(block, original):
                return block(again, **arguments)
        recomputing = True
        return original(block, again, **arguments)

    return tf.recompute_grad(run)(*tf.nest.flatten(inputs))


def _check_not_random(block: tf_keras.layers.Layer) -> None:
    for layer in block._flatten_layers():
        if hasattr(layer, "_random_generator"):
            raise TrainingError(
                f"trainer.optimization.recompute names {block.name!r}, whose layer {layer.name!r} "
                f"({type(layer).__name__}) draws random numbers; recomputed, they would be others.",
                "Move that layer out of the block, or do not recompute the block.",
            )


@contextmanager
def _as_it_was(block: tf_keras.layers.Layer, original: Callable[..., Any]) -> Iterator[None]:
    """Gives a block its own `call` back, without updates of the moving averages of batch normalization in it."""
    normalizations = [
        layer for layer in block._flatten_layers() if isinstance(layer, tf_keras.layers.BatchNormalization)
    ]
    kept = block.call, [layer.momentum for layer in normalizations]
    block.call = functools.partial(original, block)
    for layer in normalizations:
        layer.momentum = 1.0
    try:
        yield
    finally:
        block.call = kept[0]
        for layer, momentum in zip(normalizations, kept[1], strict=True):
            layer.momentum = momentum
