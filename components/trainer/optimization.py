"""The optimizer as the recipe gives it, with the recipe.yaml's learning rate, schedule and clipping."""

from __future__ import annotations

import math
from typing import Any

import tf_keras

from components.errors import TrainingError
from components.trainer.optimization_settings import OptimizationSettings, ScheduleSettings


def configured(
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
        base = _constant_rate(given) if learning_rate is None else learning_rate
        changes["learning_rate"] = _rate(base * scale(settings, batch_size), settings.learning_rate_schedule, steps)
    return type(given).from_config({**given.get_config(), **changes}) if changes else given


def scale(settings: OptimizationSettings, batch_size: int) -> float:
    """What the learning rate is multiplied with for a global batch of `batch_size`."""
    if settings.base_batch_size is None:
        return 1.0
    ratio = batch_size / settings.base_batch_size
    return ratio if settings.learning_rate_scaling == "linear" else math.sqrt(ratio)


def _rate(full: float, schedule: ScheduleSettings | None, steps: int) -> Any:
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


def _constant_rate(optimizer: tf_keras.optimizers.Optimizer) -> float:
    rate = optimizer.get_config()["learning_rate"]
    if isinstance(rate, dict):
        raise TrainingError(
            f"compile_arguments in model.py gives the optimizer a schedule ({rate.get('class_name')}), expected a "
            "number where recipe.yaml scales or schedules the learning rate.",
            "Give the optimizer a number, or take the settings out of trainer.optimization.",
        )
    return float(rate)
