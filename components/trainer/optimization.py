"""What `trainer.optimization` asks for: learning rate and clipping, and recomputed blocks."""

from __future__ import annotations

import fnmatch
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.settings import OptimizationSettings, ScheduleSettings
from contracts.errors import TrainingError


def configured_optimizer(
    optimizer: Any, settings: OptimizationSettings, batch_size: int, steps: int, learning_rate: float | None = None
) -> tf_keras.optimizers.Optimizer:
    """Returns a new optimizer of the same kind, set as recipe.yaml says.

    Args:
        optimizer: What the recipe's `compile_arguments` gives: an optimizer or its name.
        settings: The recipe's `trainer.optimization`.
        batch_size: The global batch.
        steps: Training steps in all, where the schedule ends.
        learning_rate: Replaces the recipe's, before it is scaled.

    Raises:
        TrainingError: The recipe already uses a schedule, which cannot be scaled or replaced by a number.
    """
    given = tf_keras.optimizers.get(optimizer)
    changes: dict[str, Any] = {}
    if settings.clip_norm is not None:
        changes["global_clipnorm"] = settings.clip_norm
    if learning_rate is not None or settings.learning_rate_schedule or settings.learning_rate_scaling != "none":
        base = _constant_learning_rate(given) if learning_rate is None else learning_rate
        changes["learning_rate"] = _learning_rate(
            base * learning_rate_scale(settings, batch_size), settings.learning_rate_schedule, steps
        )
    return type(given).from_config({**given.get_config(), **changes}) if changes else given


def learning_rate_scale(settings: OptimizationSettings, batch_size: int) -> float:
    """What the learning rate is multiplied with for a global batch of `batch_size`."""
    if settings.base_batch_size is None:
        return 1.0
    ratio = batch_size / settings.base_batch_size
    return ratio if settings.learning_rate_scaling == "linear" else math.sqrt(ratio)


def _learning_rate(full: float, schedule: ScheduleSettings | None, steps: int) -> Any:
    if schedule is None:
        return full
    if steps <= schedule.warmup_steps:
        raise TrainingError(
            f"trainer.optimization.learning_rate_schedule.warmup_steps is {schedule.warmup_steps}, "
            f"but the training has only {steps} steps.",
            "Warm up for fewer steps, or train longer.",
        )
    # Of CosineDecay with an alpha of 1 only the warm-up remains.
    return tf_keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if schedule.warmup_steps else full,
        decay_steps=steps - schedule.warmup_steps,
        alpha=1.0 if schedule.decay == "none" else schedule.final_fraction,
        warmup_target=full if schedule.warmup_steps else None,
        warmup_steps=schedule.warmup_steps,
    )


def _constant_learning_rate(optimizer: tf_keras.optimizers.Optimizer) -> float:
    rate = optimizer.get_config()["learning_rate"]
    if isinstance(rate, dict):
        raise TrainingError(
            f"compile_arguments in model.py gives the optimizer a schedule ({rate.get('class_name')}), expected a "
            "number where recipe.yaml scales or schedules the learning rate.",
            "Give the optimizer a number, or take the settings out of trainer.optimization.",
        )
    return float(rate)


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
    for name in matching_layers("trainer.optimization.recompute names", patterns, list(blocks)):
        _check_not_random(blocks[name])
        # Keras looks the method up whenever the layer is called; a layer that wraps the block would have to be put into
        # the model by cloning it.
        blocks[name].call = functools.partial(_recomputed, blocks[name], type(blocks[name]).call)


def matching_layers(setting: str, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names of the layers that patterns match, `*` standing for any letters.

    Args:
        setting: How a message about a pattern begins.
        patterns: What the setting holds.
        names: The model's layers.

    Raises:
        TrainingError: A pattern matches no layer.
    """
    chosen = {pattern: fnmatch.filter(names, pattern) for pattern in patterns}
    for pattern, matches in chosen.items():
        if not matches:
            raise TrainingError(
                f"{setting} {pattern!r}, which fits none of the model's layers: {', '.join(names)}.",
                "Name a layer or a nested model of the model that build_model returns.",
            )
    return [name for matches in chosen.values() for name in matches]


def undo_recompute(model: tf_keras.Model) -> None:
    """Gives all blocks their own `call` back: an exported model has no backward pass, and TF Lite knows none."""
    for layer in model.layers:
        # Keras has layers with a `call` of their own, too.
        if getattr(layer.call, "func", None) is _recomputed:
            del layer.call


def _recomputed(block: tf_keras.layers.Layer, original: Callable[..., Any], inputs: Any, **arguments: Any) -> Any:
    """The block's `call`, recomputed."""
    recomputing = False

    def run(*tensors: tf.Tensor) -> Any:
        nonlocal recomputing
        again = tf.nest.pack_sequence_as(inputs, tensors)
        # Traced twice: for the forward pass, then for the backward pass, which is outside of Keras's call of the block
        # and so has to call it anew, or its layers would know neither of training nor of the dtype policy.
        if recomputing:
            with _original_call(block, original):
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
def _original_call(block: tf_keras.layers.Layer, original: Callable[..., Any]) -> Iterator[None]:
    """Gives a block its own `call` back, without updates of the moving averages of batch normalization in it."""
    normalizations = [
        layer for layer in block._flatten_layers() if isinstance(layer, tf_keras.layers.BatchNormalization)
    ]
    call, momenta = block.call, [layer.momentum for layer in normalizations]
    block.call = functools.partial(original, block)
    for layer in normalizations:
        layer.momentum = 1.0
    try:
        yield
    finally:
        block.call = call
        for layer, momentum in zip(normalizations, momenta, strict=True):
            layer.momentum = momentum
