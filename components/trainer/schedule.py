"""The length of a training: batches, steps, epochs and phases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.trainer.inputs import Split, batches_per_pass
from components.trainer.settings import TrainerSettings


@dataclass(frozen=True)
class Plan:
    """One `fit` of the training.

    Attributes:
        initial_epoch: The number of epochs trained before it.
        epochs: The number of epochs trained after it, including those before.
        steps_per_epoch: Batches per epoch.
        freeze: Names of layers that do not learn; `*` stands for any characters.
        learning_rate: Replaces the recipe's.
    """

    initial_epoch: int
    epochs: int
    steps_per_epoch: int
    freeze: Sequence[str] = ()
    learning_rate: float | None = None

    @property
    def steps(self) -> int:
        """Its number of training steps."""
        return (self.epochs - self.initial_epoch) * self.steps_per_epoch


def plan_phases(settings: TrainerSettings, rows: int) -> list[Plan]:
    """The parts of a training, fitted one after the other.

    With `epochs` and `phases`, an epoch is one pass over `rows` in whole batches. With `train_steps`, there are as many
    epochs as these steps make passes, rounded up, and the steps are spread evenly over them.

    Raises:
        TrainingError: There are fewer rows than one batch needs.
    """
    steps_per_pass = batches_per_pass(rows, settings.batch_size)
    if settings.train_steps is not None:
        epochs = math.ceil(settings.train_steps / steps_per_pass)
        return [Plan(0, epochs, math.ceil(settings.train_steps / epochs))]
    if settings.epochs is not None:
        return [Plan(0, settings.epochs, steps_per_pass)]
    plans: list[Plan] = []
    for phase in settings.phases:
        start = plans[-1].epochs if plans else 0
        plans.append(Plan(start, start + phase.epochs, steps_per_pass, phase.freeze, phase.learning_rate))
    return plans


def describe_batches(
    settings: TrainerSettings, plans: Sequence[Plan], train: Split, evaluation: Split, replicas: int
) -> Iterator[str]:
    """Lines for the training's log: the numbers of rows, batches, epochs and steps.

    Args:
        settings: The recipe's `trainer` section.
        plans: The parts of the training.
        train: The split to learn from.
        evaluation: The split to validate with.
        replicas: The number of devices that share a batch.
    """
    storage = "kept in memory" if train.columns is not None else "streamed from disk"
    if train.cached is not None:
        storage = "kept parsed on disk"
    yield f"Rows: {train.rows:,} to train on, {storage}; {evaluation.rows:,} to validate with"
    rows = settings.batch_size // replicas
    batch = f"Batch: {settings.batch_size:,} rows"
    if replicas > 1:
        batch += f", {rows:,} for each of {replicas} replicas"
    groups = settings.optimization.gradient_accumulation
    if groups > 1:
        batch += f", in groups of {-(-rows // groups):,} whose gradients are added up"
    per_pass = batches_per_pass(train.rows, settings.batch_size)
    yield f"{batch}; {per_pass:,} batches are one pass, which leaves out {train.rows % settings.batch_size:,} rows"
    for number, plan in enumerate(plans, 1):
        epochs = f"epochs {plan.initial_epoch + 1:,} to {plan.epochs:,}"
        phase = f"Phase {number}" if len(plans) > 1 else "Length"
        frozen = f"; frozen: {', '.join(plan.freeze)}" if plan.freeze else ""
        yield f"{phase}: {epochs}, {plan.steps_per_epoch:,} steps each, {plan.steps:,} steps in all{frozen}"
