"""Gradient accumulation inside one training step: a large batch in the memory of a small one."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.src.engine import data_adapter

from components.errors import TrainingError


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
    model.train_step = functools.partial(_train_step, model, num_groups)


def _train_step(model: tf_keras.Model, num_groups: int, data: Any) -> dict[str, tf.Tensor]:
    """Keras's train_step, group by group; `data` is one replica's part of the batch."""
    rows = tf.shape(tf.nest.flatten(data)[0])[0]
    group_rows = -(-rows // num_groups)
    variables = model.trainable_variables

    def add_group(start: tf.Tensor, *total: tf.Tensor) -> tuple[tf.Tensor, ...]:
        group = tf.nest.map_structure(lambda column: column[start : start + group_rows], data)
        share = tf.cast(tf.minimum(group_rows, rows - start), tf.float32) / tf.cast(rows, tf.float32)
        gradients = _gradients(model, group, share)
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


def _gradients(model: tf_keras.Model, group: Any, share: tf.Tensor) -> list[tf.Tensor]:
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
