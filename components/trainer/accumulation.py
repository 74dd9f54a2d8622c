"""Gradient accumulation: a batch is processed in groups, whose gradients are added up before a single update."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tf_keras.src.engine import data_adapter

from contracts.errors import TrainingError

TOLERANCE = 0.02
"""The relative error allowed in a mean: that of bfloat16, the least precise float that models compute in."""


def accumulate(model: tf_keras.Model, num_groups: int, features: Mapping[str, tf.Tensor]) -> None:
    """Makes a compiled model split each replica's part of a batch into groups and add up their gradients.

    The groups are processed one after the other within the step, so that nothing outside it changes: neither the
    steps, the metrics, the learning-rate schedule nor the strategy's single reduction of the gradients. Each group is
    weighted by its rows, so a smaller last group changes nothing either. Only batch normalization sees groups instead
    of batches.

    Args:
        model: Compiled; its `train_step` must be Keras's own.
        num_groups: At least 2; a part of a batch with fewer rows than this has one row per group.
        features: Some rows to try the model on, by the names of its inputs.

    Raises:
        TrainingError: The model has its own `train_step`, or a loss is a sum over the batch rather than a mean.
    """
    setting = f"trainer.optimization.gradient_accumulation is {num_groups}, but"
    if type(model).train_step is not tf_keras.Model.train_step:
        raise TrainingError(
            f"{setting} {type(model).__name__} in model.py has a train_step of its own, which cannot be cut into "
            "groups.",
            "Accumulate in that train_step, or set gradient_accumulation to 1.",
        )
    for loss in tf.nest.flatten(model.loss):
        if getattr(loss, "reduction", None) in (tf_keras.losses.Reduction.SUM, tf_keras.losses.Reduction.NONE):
            raise TrainingError(
                f"{setting} the loss {loss.name!r} has the reduction {loss.reduction!r}, expected a mean over the "
                "batch.",
                "Leave the loss's reduction at its default, or set gradient_accumulation to 1.",
            )
    _check_added_losses(model, features, setting)
    model.train_step = functools.partial(_accumulating_train_step, model, num_groups)


def _check_added_losses(model: tf_keras.Model, features: Mapping[str, tf.Tensor], setting: str) -> None:
    """Checks that what layers add to the loss (`add_loss`, activity regularizers) is a mean over the rows.

    A layer does not declare this, so the model is run on all rows together and on each row alone.
    """
    names_in_training = _names_in_training(model, features)
    if not names_in_training:
        return
    rows = [{name: column[row : row + 1] for name, column in features.items()} for row in range(_num_rows(features))]
    losses_alone = np.array([_added_losses(model, row) for row in rows])
    # Several times, because a layer that draws random numbers adds a different loss each time.
    losses_together = np.array([_added_losses(model, features) for _ in range(4)])
    names = [name for name, _ in _layers_that_add(model)]
    for name in names_in_training:
        if name not in names:
            raise TrainingError(
                f"{setting} the layer {name!r} adds a loss only in training, so it cannot be checked beforehand "
                "whether it is a mean over the rows.",
                "Let it add the loss whatever `training` is, or set gradient_accumulation to 1.",
            )
    for name, row_losses, batch_losses in zip(names, losses_alone.T, losses_together.T, strict=True):
        scale = max(np.abs(row_losses).max(), np.abs(batch_losses).max())
        # Written so that a NaN is refused as well.
        if not abs(batch_losses.mean() - row_losses.mean()) <= TOLERANCE * scale + np.ptp(batch_losses):
            raise TrainingError(
                f"{setting} the loss that the layer {name!r} adds is not a mean over the rows: it is "
                f"{batch_losses.mean():.6g} for {len(rows)} rows together, and {row_losses.mean():.6g} on average for "
                "each of them alone.",
                "Add a mean (tf.reduce_mean over the rows), or set gradient_accumulation to 1.",
            )
        if scale == 0:
            logging.warning(
                "The layer %r adds a loss that is 0 for the first rows, so it is not known whether it is a mean over "
                "the rows. gradient_accumulation is correct only if it is.",
                name,
            )


def _num_rows(features: Mapping[str, tf.Tensor]) -> int:
    return len(next(iter(features.values())))


def _added_losses(model: tf_keras.Model, features: Mapping[str, tf.Tensor]) -> list[float]:
    """What each layer adds to the loss of these rows."""
    model(features, training=False)
    return [float(loss) for _, loss in _layers_that_add(model)]


def _names_in_training(model: tf_keras.Model, features: Mapping[str, tf.Tensor]) -> list[str]:
    """The layers that add a loss in training; the model is only traced, as running it would update moving averages."""
    names: list[str] = []

    def forward(rows: Mapping[str, tf.Tensor]) -> None:
        model(rows, training=True)
        names.extend(name for name, _ in _layers_that_add(model))

    strategy = model.distribute_strategy
    tf.function(lambda rows: strategy.run(forward, (rows,)), autograph=False).get_concrete_function(dict(features))
    return names


def _layers_that_add(model: tf_keras.Model) -> Iterator[tuple[str, tf.Tensor]]:
    """The names of the layers that added to the loss when the model was last called, and what they added."""
    return ((layer.name, loss) for layer in model._flatten_layers() for loss in layer._eager_losses)


def _accumulating_train_step(model: tf_keras.Model, num_groups: int, data: Any) -> dict[str, tf.Tensor]:
    """Keras's `train_step`, group by group; `data` is one replica's part of the batch."""
    rows = tf.shape(tf.nest.flatten(data)[0])[0]
    group_rows = -(-rows // num_groups)
    variables = model.trainable_variables

    def add_group(start: tf.Tensor, *total: tf.Tensor) -> tuple[tf.Tensor, ...]:
        group = tf.nest.map_structure(lambda column: column[start : start + group_rows], data)
        share = tf.cast(tf.minimum(group_rows, rows - start), tf.float32) / tf.cast(rows, tf.float32)
        gradients = _group_gradients(model, group, share)
        return start + group_rows, *(subtotal + gradient for subtotal, gradient in zip(total, gradients, strict=True))

    zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
    # One at a time, since parallel groups would need the memory of the whole batch.
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
    # Not compute_metrics, which also reads the metrics; under a strategy that cannot be done in a loop.
    model.compiled_metrics.update_state(y, predicted, sample_weight)
    return [
        tf.zeros(variable.shape, variable.dtype) if gradient is None else tf.convert_to_tensor(gradient)
        for gradient, variable in zip(gradients, model.trainable_variables, strict=True)
    ]
