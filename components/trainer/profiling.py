"""Profiles training steps for TensorBoard's Profile tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.schedule import Plan
from contracts.errors import TrainingError


class Profile(tf_keras.callbacks.Callback):
    """Profiles a range of training steps.

    Keras's own TensorBoard callback counts executions of `steps_per_execution` steps each, and a training may have
    fewer of those than the number of the first step. Here the execution before the range is shortened, and within the
    range each execution is one step, so that the profile shows steps separately.

    Args:
        steps: The first and the last step, counted from 1 over the whole training.
        steps_per_epoch: The training's steps per epoch.
        folder: The folder of TensorBoard's curves, which need not exist yet.
        writes: Whether this process writes the profile. A process that does not must run the same executions, or the
            workers would wait for each other forever.
    """

    def __init__(self, steps: tuple[int, int], steps_per_epoch: int, folder: str, writes: bool = True) -> None:
        super().__init__()
        self._first, self._last = steps
        self._steps_per_epoch = steps_per_epoch
        self._folder = folder
        self._writes = writes
        self._epoch_start = 0
        self._began = False
        self._running = False

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._full_execution = int(self.model._steps_per_execution.numpy())
        if self._writes:
            # Starting the profiler for the first time in a process takes long, which would show in the profile.
            tf.profiler.experimental.start("")
            tf.profiler.experimental.stop(save=False)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._epoch_start = epoch * self._steps_per_epoch
        self._prepare(self._epoch_start)

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._stop_after(self._epoch_start + batch)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook; `batch` is the last batch of the execution."""
        if batch + 1 < self._steps_per_epoch:
            self._prepare(self._epoch_start + batch + 1)

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook, after the last step of an epoch."""
        self._stop_after(self._epoch_start + self._steps_per_epoch)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._stop_after(self._last)
        self.model._steps_per_execution.assign(self._full_execution)
        if self._writes and not self._began:
            print(
                f"No profile: the steps {self._first} to {self._last} (trainer.callbacks.tensorboard.profile_steps) "
                "were not trained in this execution, which went on after them or ended before them.",
                flush=True,
            )

    def _prepare(self, trained: int) -> None:
        """Sets the next execution's length after `trained` steps, and starts the profiler if the range begins there.

        Called between executions: by the time of `on_train_batch_begin`, Keras has read the length and begun to record
        the step.
        """
        before = self._first - 1 - trained
        length = self._full_execution
        if before > 0:
            length = min(length, before)
        elif before == 0 or (self._began and trained < self._last):
            length = 1
        self.model._steps_per_execution.assign(length)
        if before == 0:
            self._began = True
            self._start()

    def _start(self) -> None:
        if self._writes:
            tf.profiler.experimental.start(self._folder)
            self._running = True

    def _stop_after(self, trained: int) -> None:
        if self._running and trained >= self._last:
            tf.profiler.experimental.stop()
            self._running = False


def is_within(steps: tuple[int, int], plan: Plan) -> bool:
    """Whether a plan includes both the first and the last of `steps`, counted from 1 over the whole training."""
    return plan.initial_epoch * plan.steps_per_epoch < steps[0] and steps[1] <= plan.epochs * plan.steps_per_epoch


def check_steps(steps: tuple[int, int], plans: Sequence[Plan]) -> None:
    """Checks that one of the plans includes all the steps to profile.

    Raises:
        TrainingError: None does.
    """
    if any(is_within(steps, plan) for plan in plans):
        return
    trained = (f"{p.initial_epoch * p.steps_per_epoch + 1} to {p.epochs * p.steps_per_epoch}" for p in plans)
    raise TrainingError(
        f"trainer.callbacks.tensorboard.profile_steps is {list(steps)}, but the training has the steps "
        f"{' and '.join(trained)}.",
        "Choose steps of one phase." if len(plans) > 1 else "Choose steps that it has, or train longer.",
    )
