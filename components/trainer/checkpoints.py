"""Keeps the model as it was during the training, every so many epochs or steps, in the ModelRun artifact."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tf_keras

from components.trainer import interface
from components.trainer.callback_settings import CheckpointSettings
from contracts.errors import TrainingError

FOLDER = "checkpoints"
"""Where they lie in the folder of the training's files."""

MODEL_SUFFIX = ".keras"
WEIGHTS_SUFFIX = ".weights.h5"


class Checkpoints(tf_keras.callbacks.Callback):
    """Saves the model after every `period` epochs, as `epoch-0003.keras`; `StepCheckpoints` does so within an epoch.

    Args:
        settings: See CheckpointSettings.
        run_dir: The folder of the training's files.
        steps_per_epoch: The training's steps per epoch.
        writes: Whether this process keeps the files. Others save as well, since values that differ between workers can
            only be read by all of them together.
    """

    def __init__(self, settings: CheckpointSettings, run_dir: str, steps_per_epoch: int, writes: bool) -> None:
        super().__init__()
        self._settings = settings
        self._folder = Path(run_dir, FOLDER)
        self._steps_per_epoch = steps_per_epoch
        self._writes = writes

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        if self._settings.save_freq == "epoch" and (epoch + 1) % self._settings.period == 0:
            self._save(f"epoch-{epoch + 1:04}")

    def _save(self, name: str) -> None:
        suffix = WEIGHTS_SUFFIX if self._settings.save_weights_only else MODEL_SUFFIX
        self._folder.mkdir(parents=True, exist_ok=True)
        # Under another name until it is whole; Keras decides by the suffix what it writes.
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".writing-") as folder:
            path = Path(folder, name + suffix)
            if self._settings.save_weights_only:
                self.model.save_weights(str(path))
            else:
                self.model.save(str(path))
            if self._writes:
                shutil.move(path, self._folder / path.name)
        if self._writes:
            self._remove_old()

    def _remove_old(self) -> None:
        if self._settings.max_to_keep is None:
            return
        # Their numbers have the same width.
        kept = sorted(path for path in self._folder.iterdir() if path.is_file())
        for path in kept[: -self._settings.max_to_keep]:
            path.unlink()


class StepCheckpoints(Checkpoints):
    """Saves the model every `save_freq` steps of the whole training, as `step-0000150.keras`.

    A separate class, because Keras checks whether a callback has the hook.
    """

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._epoch_start = self._trained = epoch * self._steps_per_epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook; `batch` is the last one of an execution of `steps_per_execution` steps."""
        before, self._trained = self._trained, self._epoch_start + batch + 1
        every = int(self._settings.save_freq)
        if self._trained // every > before // every:
            self._save(f"step-{self._trained:07}")


def new_checkpoints(
    settings: CheckpointSettings, model: tf_keras.Model, run_dir: str, steps_per_epoch: int, writes: bool
) -> Checkpoints:
    """The callback that the settings ask for; see `Checkpoints`.

    Raises:
        TrainingError: Whole models are to be kept, and this one cannot be made again from its configuration.
    """
    if not settings.save_weights_only:
        _check_config(model)
    kind = Checkpoints if settings.save_freq == "epoch" else StepCheckpoints
    return kind(settings, run_dir, steps_per_epoch, writes)


def _check_config(model: tf_keras.Model) -> None:
    try:
        config = model.get_config()
        if not interface.is_functional(model):
            type(model).from_config(config).build_from_config(model.get_build_config())
    # Whatever these functions of classes in model.py raise.
    except Exception as error:
        raise TrainingError(
            f"trainer.callbacks.checkpoints keeps whole models, but {type(model).__name__} cannot be made again from "
            f"its get_config: {type(error).__name__}: {error}",
            "Give the classes in model.py a get_config with the arguments of their __init__, as Keras wants it, "
            "or set trainer.callbacks.checkpoints.save_weights_only to true.",
        ) from error
