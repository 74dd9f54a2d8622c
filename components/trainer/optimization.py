"""What `trainer.optimization` asks for: learning rate and clipping, gradient accumulation, recomputed blocks."""

from __future__ import annotations

import fnmatch
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.src.engine import data_adapter

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


def accumulate(model: tf_keras.Model, num_groups: int) -> None:
    """Makes a compiled model cut each replica's part of a batch into groups and add their gradients up.

    The groups are worked through one after the other within the step, so that nothing outside it changes: not the
    steps, the metrics, the learning-rate schedule or the strategy's one reduction of the gradients. Each group counts
    by its rows, so a last group that is smaller changes nothing either. Only batch normalization sees groups for
    batches.

    Args:
        model: Compiled; its `train_step` must be Keras's own.
        num_groups: At least 2; a part of a batch with fewer rows has a group a row.

    Raises:
        TrainingError: The model has a `train_step` of its own, or a loss is a sum, not a mean, over the batch.
    """
    if type(model).train_step is not tf_keras.Model.train_step:
        raise TrainingError(
            f"trainer.optimization.gradient_accumulation is {num_groups}, but {type(model).__name__} in model.py has a "
            "train_step of its own, which cannot be cut into groups.",
            "Accumulate in that train_step, or set gradient_accumulation to 1.",
        )
    for loss in tf.nest.flatten(model.loss):
        if getattr(loss, "reduction", None) in (tf_keras.losses.Reduction.SUM, tf_keras.losses.Reduction.NONE):
            raise TrainingError(
                f"trainer.optimization.gradient_accumulation is {num_groups}, but the loss {loss.name!r} has the "
                f"reduction {loss.reduction!r}, expected a mean over the batch.",
                "Leave the loss's reduction at its default, or set gradient_accumulation to 1.",
            )
    model.train_step = functools.partial(_accumulating_train_step, model, num_groups)


def _accumulating_train_step(model: tf_keras.Model, num_groups: int, data: Any) -> dict[str, tf.Tensor]:
    """Keras's train_step, group by group; `data` is one replica's part of the batch."""
    rows = tf.shape(tf.nest.flatten(data)[0])[0]
    group_rows = -(-rows // num_groups)
    variables = model.trainable_variables

    def add_group(start: tf.Tensor, *total: tf.Tensor) -> tuple[tf.Tensor, ...]:
        group = tf.nest.map_structure(lambda column: column[start : start + group_rows], data)
        share = tf.cast(tf.minimum(group_rows, rows - start), tf.float32) / tf.cast(rows, tf.float32)
        gradients = _group_gradients(model, group, share)
        return start + group_rows, *(one + more for one, more in zip(total, gradients, strict=True))

    zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
    # One at a time: groups side by side would need the memory of the whole batch again.
    _, *gradients = tf.while_loop(
        lambda start, *_: start < rows, add_group, (tf.constant(0), *zeros), parallel_iterations=1
    )
    if isinstance(model.optimizer, tf_keras.mixed_precision.LossScaleOptimizer):
        gradients = model.optimizer.get_unscaled_gradients(gradients)
    model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    results: dict[str, tf.Tensor] = model.get_metrics_result()
    return results


def _group_gradients(model: tf_keras.Model, group: Any, share: tf.Tensor) -> list[tf.Tensor]:
    """The gradients of a group's loss times its share of the rows; updates the metrics."""
    x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(group)
    with tf.GradientTape() as tape:
        predicted = model(x, training=True)
        loss = model.compute_loss(x, y, predicted, sample_weight) * share
        if isinstance(model.optimizer, tf_keras.mixed_precision.LossScaleOptimizer):
            loss = model.optimizer.get_scaled_loss(loss)
    model._validate_target_and_loss(y, loss)
    gradients = tape.gradient(loss, model.trainable_variables)
    # Not compute_metrics, which also reads the metrics: under a strategy that cannot be done in a loop.
    model.compiled_metrics.update_state(y, predicted, sample_weight)
    return [
        tf.zeros(variable.shape, variable.dtype) if gradient is None else tf.convert_to_tensor(gradient)
        for gradient, variable in zip(gradients, model.trainable_variables, strict=True)
    ]


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
