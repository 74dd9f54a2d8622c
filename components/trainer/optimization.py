"""The settings of `trainer.optimization` applied to a model: learning rate, clipping and recomputed blocks."""

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
        optimizer: An optimizer or its name, as the recipe's `compile_arguments` gives it.
        settings: The recipe's `trainer.optimization`.
        batch_size: The global batch size.
        steps: The number of training steps, at the end of which the schedule ends.
        learning_rate: Replaces the recipe's learning rate before scaling.

    Raises:
        TrainingError: The recipe already uses a schedule, which cannot be scaled or replaced by a number.
    """
    original = tf_keras.optimizers.get(optimizer)
    changes: dict[str, Any] = {}
    if settings.clip_norm is not None:
        changes["global_clipnorm"] = settings.clip_norm
    if learning_rate is not None or settings.learning_rate_schedule or settings.learning_rate_scaling != "none":
        base = _constant_learning_rate(original) if learning_rate is None else learning_rate
        changes["learning_rate"] = _learning_rate(
            base * learning_rate_scale(settings, batch_size), settings.learning_rate_schedule, steps
        )
    return type(original).from_config({**original.get_config(), **changes}) if changes else original


def learning_rate_scale(settings: OptimizationSettings, batch_size: int) -> float:
    """The factor of the learning rate for a global batch of `batch_size`."""
    if settings.base_batch_size is None:
        return 1.0
    ratio = batch_size / settings.base_batch_size
    return ratio if settings.learning_rate_scaling == "linear" else math.sqrt(ratio)


def _learning_rate(full_rate: float, schedule: ScheduleSettings | None, steps: int) -> Any:
    if schedule is None:
        return full_rate
    if steps <= schedule.warmup_steps:
        raise TrainingError(
            f"trainer.optimization.learning_rate_schedule.warmup_steps is {schedule.warmup_steps}, "
            f"but the training has only {steps} steps.",
            "Warm up for fewer steps, or train longer.",
        )
    # With an alpha of 1, CosineDecay only warms up.
    return tf_keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if schedule.warmup_steps else full_rate,
        decay_steps=steps - schedule.warmup_steps,
        alpha=1.0 if schedule.decay == "none" else schedule.final_fraction,
        warmup_target=full_rate if schedule.warmup_steps else None,
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
    """Makes blocks of a model keep only their inputs for the backward pass.

    The gradients do not change. Neither do the moving averages of batch normalization, which are not updated again when
    a block is recomputed.

    Args:
        model: Built, not compiled.
        patterns: Names of its layers; `*` stands for any characters. A block is a layer or a nested model.

    Raises:
        TrainingError: A pattern matches no layer, or a block draws random numbers, which would differ the second time.
    """
    blocks = {layer.name: layer for layer in model.layers if not isinstance(layer, tf_keras.layers.InputLayer)}
    for name in matching_layers("trainer.optimization.recompute names", patterns, list(blocks)):
        _check_not_random(blocks[name])
        # Keras looks the method up whenever the layer is called. Wrapping the block in a layer instead would mean
        # cloning the model.
        blocks[name].call = functools.partial(_recomputed, blocks[name], type(blocks[name]).call)


def matching_layers(setting: str, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names of the layers that match patterns, in which `*` stands for any characters.

    Args:
        setting: The start of a message about a pattern.
        patterns: The setting's value.
        names: The names of the model's layers.

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
    """Restores every block's own `call`: an exported model has no backward pass, and TF Lite does not support any."""
    for layer in model.layers:
        # Keras itself sets `call` on some layers, too.
        if getattr(layer.call, "func", None) is _recomputed:
            del layer.call


def _recomputed(block: tf_keras.layers.Layer, original: Callable[..., Any], inputs: Any, **arguments: Any) -> Any:
    """The block's `call`, recomputed."""
    recomputing = False

    def run(*tensors: tf.Tensor) -> Any:
        nonlocal recomputing
        block_inputs = tf.nest.pack_sequence_as(inputs, tensors)
        # Traced twice: for the forward pass, then for the backward pass. That is outside of Keras's call of the block,
        # so it has to call it again, or its layers would see neither the training flag nor the dtype policy.
        if recomputing:
            with _original_call(block, original):
                return block(block_inputs, **arguments)
        recomputing = True
        return original(block, block_inputs, **arguments)

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
    """Restores a block's own `call` within the context, without updating the moving averages of batch normalization."""
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
