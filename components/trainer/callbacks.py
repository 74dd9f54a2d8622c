"""The callbacks of a training: those set under `trainer.callbacks`, and those that every training has."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.callback_settings import CallbackSettings, TensorBoardSettings
from contracts import atomic
from contracts.errors import TrainingError

TENSORBOARD_FOLDER = "tensorboard"
TRAIN_CURVES = f"{TENSORBOARD_FOLDER}/train"
BEST_WEIGHTS = "best/weights"


def from_settings(settings: CallbackSettings, run_dir: str) -> list[tf_keras.callbacks.Callback]:
    """The callbacks that recipe.yaml asks for; their files go to `run_dir`."""
    chosen: list[tf_keras.callbacks.Callback] = []
    if settings.early_stopping:
        chosen.append(tf_keras.callbacks.EarlyStopping(**settings.early_stopping.model_dump(), verbose=1))
    if settings.reduce_lr_on_plateau:
        chosen.append(tf_keras.callbacks.ReduceLROnPlateau(**settings.reduce_lr_on_plateau.model_dump(), verbose=1))
    if settings.best_checkpoint:
        path = f"{run_dir}/{BEST_WEIGHTS}"
        best = settings.best_checkpoint.model_dump()
        chosen.append(tf_keras.callbacks.ModelCheckpoint(path, save_best_only=True, save_weights_only=True, **best))
    if settings.tensorboard:
        chosen.append(_tensorboard(settings.tensorboard, run_dir))
    return chosen


def of_recipe(recipe: Any, params: Mapping[str, Any], run_dir: str) -> list[tf_keras.callbacks.Callback]:
    """The callbacks that the optional function `callbacks(params, folder)` of a recipe's model.py returns.

    Args:
        recipe: The recipe's model.py.
        params: The recipe's `trainer.params`.
        run_dir: The folder for the training's files, where summaries may be written.

    Raises:
        TrainingError: It returned anything else than a list of callbacks.
    """
    function = getattr(recipe, "callbacks", None)
    # model.py may import Keras's module of that name.
    if not inspect.isfunction(function):
        return []
    own = function(params, run_dir)
    if not isinstance(own, list) or not all(isinstance(callback, tf_keras.callbacks.Callback) for callback in own):
        received = f"list of {', '.join(type(item).__name__ for item in own)}" if isinstance(own, list) else None
        raise TrainingError(
            f"callbacks in model.py returned {received or type(own).__name__}, expected a list of "
            "tf_keras.callbacks.Callback.",
            "Return such objects from it, or an empty list.",
        )
    return own


def _tensorboard(settings: TensorBoardSettings, run_dir: str) -> tf_keras.callbacks.Callback:
    return tf_keras.callbacks.TensorBoard(
        log_dir=f"{run_dir}/{TENSORBOARD_FOLDER}",
        update_freq=settings.update_freq,
        histogram_freq=settings.histograms_every,
        write_graph=False,
    )


class _Watcher(tf_keras.callbacks.Callback):
    """Looks at the metrics at the end of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._epoch = epoch + 1

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._look(logs or {})

    def _look(self, metrics: Mapping[str, Any]) -> None:
        raise NotImplementedError


class _Stepwise(_Watcher):
    """Also looks at them within an epoch. A separate class, because Keras checks whether a callback has this hook."""

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook; called once for each `steps_per_execution` steps."""
        self._look(logs or {})


class ProgressFile(_Watcher):
    """Writes a small JSON file with epoch, epochs, metrics and a note, for the live table of a run.

    Args:
        path: The file.
        epochs: The number of epochs.
        note: What else to show, such as the precision.
    """

    def __init__(self, path: Path, epochs: int, note: str) -> None:
        super().__init__()
        self._path = path
        self._epochs = epochs
        self._note = note

    def _look(self, metrics: Mapping[str, Any]) -> None:
        numbers = {name: float(value) for name, value in metrics.items()}
        progress = {"epoch": self._epoch, "epochs": self._epochs, "metrics": numbers, "note": self._note}
        atomic.write_text(self._path, json.dumps(progress))


class StepwiseProgressFile(ProgressFile, _Stepwise):
    """The same, also within an epoch."""


class NaNGuard(_Watcher):
    """Ends the training with an error as soon as an epoch's loss is not a finite number."""

    def _look(self, metrics: Mapping[str, Any]) -> None:
        loss = float(metrics.get("loss", 0.0))
        if not math.isfinite(loss):
            raise TrainingError(
                f"The loss became {loss} in epoch {self._epoch}.",
                "Lower the learning rate, set trainer.optimization.clip_norm, or find the cause with "
                "--set trainer.debug=true.",
            )


class StepwiseNaNGuard(NaNGuard, _Stepwise):
    """The same, also within an epoch."""


class ExampleImages(tf_keras.callbacks.Callback):
    """Shows training images in TensorBoard, as the model sees them, after each epoch.

    Args:
        batches: The batches that `fit` is given; the first ones are shown.
        num_images: The most images to show of each feature.
        run_dir: The folder of the training's files.

    Raises:
        TrainingError: No feature is an image, [height, width, 1, 3 or 4 channels].
    """

    def __init__(self, batches: tf.data.Dataset, num_images: int, run_dir: str) -> None:
        super().__init__()
        features = batches.element_spec[0]
        self._names = [name for name, spec in features.items() if len(spec.shape) == 4 and spec.shape[-1] in (1, 3, 4)]
        if not self._names:
            raise TrainingError(
                f"trainer.callbacks.tensorboard.example_images is {num_images}, but none of the features "
                f"{', '.join(features)} is an image of shape [height, width, channels].",
                "Set example_images to 0.",
            )
        self._batches = iter(batches)
        self._num_images = num_images
        self._folder = f"{run_dir}/{TRAIN_CURVES}"

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        features = next(self._batches)[0]
        with tf.summary.create_file_writer(self._folder).as_default():
            for name in self._names:
                tf.summary.image(name, features[name], step=epoch, max_outputs=self._num_images)


def watchers(epochs: int, note: str, stepwise: bool, progress: str | None) -> list[tf_keras.callbacks.Callback]:
    """The callbacks of every training: the NaN guard, and the progress file if there is to be one.

    Args:
        epochs: The number of epochs.
        note: See ProgressFile.
        stepwise: Whether they may look within an epoch, which ParameterServerStrategy does not allow.
        progress: The progress file; None writes none.
    """
    guard = StepwiseNaNGuard() if stepwise else NaNGuard()
    if not progress:
        return [guard]
    kind = StepwiseProgressFile if stepwise else ProgressFile
    return [guard, kind(Path(progress), epochs, note)]
