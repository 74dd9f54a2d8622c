"""Times the epochs of a `fit`, without its validation."""

from __future__ import annotations

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tf_keras

FOLDER_VARIABLE = "MILLRACE_BENCHMARK_TIMES"
"""The environment variable with the folder to which `timed` models write their times; if unset, they write none."""


class EpochTimer(tf_keras.callbacks.Callback):
    """Measures from the end of one epoch to the end of the next, without the validation in between.

    Everything else counts: other callbacks, checkpoints, the progress file. The first epoch, which traces and compiles,
    is not measured.

    Attributes:
        epochs: Wall and processor seconds by epoch, from the second on.
        executions: The same of each call of the training function, of `steps_per_execution` steps, from the second
            epoch on: the training alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[list[float]] = []
        self.executions: list[list[float]] = []
        self._began = _now()
        self._execution_began = _now()
        self._validation_began = _now()
        self._first = True

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Keras's hook."""
        self._execution_began = _now()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keras's hook."""
        now = _now()
        if not self._first:
            self.executions.append((now - self._execution_began).tolist())
        self._execution_began = now

    def on_test_begin(self, logs: Any = None) -> None:
        """Keras's hook."""
        self._validation_began = _now()

    def on_test_end(self, logs: Any = None) -> None:
        """Keras's hook."""
        # As if the epoch had begun later by the duration of the validation.
        self._began += _now() - self._validation_began

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keras's hook."""
        now = _now()
        if not self._first:
            self.epochs.append((now - self._began).tolist())
        self._began, self._first = now, False


def _now() -> npt.NDArray[np.float64]:
    return np.array([time.perf_counter(), time.process_time()])


def timed(model: tf_keras.Model) -> tf_keras.Model:
    """Times every `fit` of a model, after all other callbacks, if `FOLDER_VARIABLE` is set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        model.fit = functools.partial(_fit, model, Path(folder))
    return model


def _fit(model: tf_keras.Model, folder: Path, *arguments: Any, callbacks: list[Any], **options: Any) -> Any:
    timer = EpochTimer()
    history = type(model).fit(model, *arguments, callbacks=[*callbacks, timer], **options)
    # One file per process, since workers train the same model side by side.
    Path(folder, f"{os.getpid()}.json").write_text(
        json.dumps({"epochs": timer.epochs, "executions": timer.executions}), encoding="utf-8"
    )
    return history
