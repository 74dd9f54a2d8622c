"""Saves all state of a training after each epoch, so that an interrupted one resumes as if it had never stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tf_keras.src import backend

from components.trainer import callbacks, checkpoints, devices
from contracts.file_names import HISTORY_FILE

COUNTERS: Mapping[type[tf_keras.callbacks.Callback], Sequence[str]] = {
    tf_keras.callbacks.EarlyStopping: ("best", "best_epoch", "wait", "stopped_epoch"),
    tf_keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
    tf_keras.callbacks.ModelCheckpoint: ("best",),
}
"""The attributes in which callbacks count from epoch to epoch, by the callback's type."""

CHECKPOINT_FOLDER = "checkpoint"
STATE_FILE = "state.json"
BEST_WEIGHTS_FILE = "early_stopping.npz"


class TrainingState(tf_keras.callbacks.Callback):
    """Saves the state of one `fit` after each epoch; the last callback, so that the others have counted the epoch.

    TensorFlow's checkpoint holds the model, the optimizer and the layers' random generators. Everything else is in a
    folder beside it, `epoch-N`, which is written before checkpoint N and removed after the next one. The checkpoint,
    which TensorFlow replaces atomically, decides which folder is valid.

    Args:
        folder: A folder for this `fit` alone; all workers must see it.
        run_dir: The folder of the training's files, whose history and best weights are saved.
        model: Compiled.
        other_callbacks: The callbacks before this one.
        strategy: The strategy in whose scope this is called.
    """

    def __init__(
        self,
        folder: str,
        run_dir: str,
        model: tf_keras.Model,
        other_callbacks: Sequence[tf_keras.callbacks.Callback],
        strategy: tf.distribute.Strategy,
    ) -> None:
        super().__init__()
        # Values that differ between workers can only be read by all workers together, so all of them save.
        self._chief_worker_only = False
        self._folder = Path(folder)
        self._run_dir = Path(run_dir)
        self._counting = [callback for callback in other_callbacks if type(callback) in COUNTERS]
        self._is_chief = devices.is_chief(strategy)
        generators = {f"generator_{number}": generator for number, generator in enumerate(_generators(model))}
        self._checkpoint = tf.train.Checkpoint(model=model, **generators)
        self._restored: dict[str, Any] | None = None
        self._best_weights: list[Any] | None = None
        self._trained_steps = 0

    def restore(self, initial_epoch: int, epochs: int, steps_per_epoch: int) -> int:
        """Restores the saved state except the callbacks' counters, which Keras resets when `fit` begins.

        Args:
            initial_epoch: The epoch at which this `fit` begins if nothing was saved.
            epochs: The epoch at which it ends.
            steps_per_epoch: Batches per epoch.

        Returns:
            The epoch to continue with; `epochs` if there is nothing left to train.
        """
        latest = tf.train.latest_checkpoint(str(self._folder / CHECKPOINT_FOLDER))
        if latest is None:
            return initial_epoch
        self._checkpoint.restore(latest)
        epoch = int(latest.rpartition("-")[2])
        epoch_folder = self._epoch_folder(epoch)
        self._restored = json.loads((epoch_folder / STATE_FILE).read_text(encoding="utf-8"))
        if (epoch_folder / BEST_WEIGHTS_FILE).exists():
            with np.load(epoch_folder / BEST_WEIGHTS_FILE) as arrays:
                self._best_weights = [arrays[name] for name in arrays.files]
        if self._is_chief:
            _copy(epoch_folder, self._run_dir)
        self._trained_steps = (epoch - initial_epoch) * steps_per_epoch
        return epochs if self._restored["stopped"] else epoch

    @property
    def was_restored(self) -> bool:
        """Whether there was something to restore."""
        return self._restored is not None

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        if self._restored is None:
            return
        # The step counter on the axis of TensorBoard's curves.
        self.model._train_counter.assign(self._trained_steps)
        for callback, counters in zip(self._counting, self._restored["counters"], strict=True):
            vars(callback).update(counters)
            if isinstance(callback, tf_keras.callbacks.EarlyStopping):
                callback.best_weights = self._best_weights

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        epochs_done = epoch + 1
        if self._is_chief:
            self._save_outside_checkpoint(epochs_done)
        folder = self._checkpoint_folder()
        tf.train.CheckpointManager(self._checkpoint, str(folder), max_to_keep=1).save(checkpoint_number=epochs_done)
        if not self._is_chief:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for old_folder in self._folder.glob("epoch-*"):
            if old_folder != self._epoch_folder(epochs_done):
                shutil.rmtree(old_folder)

    def _save_outside_checkpoint(self, epoch: int) -> None:
        folder = self._epoch_folder(epoch)
        # An interruption may have left an incomplete one.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        counters = [
            # JSON cannot hold NumPy numbers.
            {name: np.asarray(getattr(callback, name)).item() for name in COUNTERS[type(callback)]}
            for callback in self._counting
        ]
        state = {"counters": counters, "stopped": bool(self.model.stop_training)}
        (folder / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")
        for callback in self._counting:
            if isinstance(callback, tf_keras.callbacks.EarlyStopping) and callback.best_weights is not None:
                np.savez(folder / BEST_WEIGHTS_FILE, *callback.best_weights)
        _copy(self._run_dir, folder)

    def _epoch_folder(self, epoch: int) -> Path:
        return self._folder / f"epoch-{epoch}"

    def _checkpoint_folder(self) -> Path:
        if self._is_chief:
            return self._folder / CHECKPOINT_FOLDER
        task = devices.cluster_config()["task"]
        return self._folder / f"{task['type']}-{task['index']}"


def use_generators(model: tf_keras.Model, seed: int) -> list[backend.RandomGenerator]:
    """Makes the layers draw random numbers, as for dropout, from generators whose state can be saved.

    By default, Keras draws them by operations whose counters cannot be read. The generators start with the state that
    TensorFlow gives these operations on one device, so that they draw the same numbers.

    Args:
        model: Not compiled, its strategy in scope.
        seed: The seed of the training.

    Returns:
        The generators that were changed, for `drop_generators`.
    """
    changed = []
    for number, layer in enumerate(_random_layers(model)):
        generator = layer._random_generator
        if generator._rng_type == backend.RandomGenerator.RNG_LEGACY_STATEFUL:
            own_seed = number if generator._seed is None else generator._seed
            generator._generator = tf.random.Generator.from_state([0, own_seed, seed], alg="philox")
            generator._rng_type = backend.RandomGenerator.RNG_STATEFUL
            generator._built = True
            changed.append(generator)
    return changed


def drop_generators(changed: Sequence[backend.RandomGenerator]) -> None:
    """Undoes `use_generators`: an exported model draws no random numbers and needs no generators."""
    for generator in changed:
        generator._generator = None
        generator._rng_type = backend.RandomGenerator.RNG_LEGACY_STATEFUL


def _random_layers(model: tf_keras.Model) -> list[tf_keras.layers.Layer]:
    return [
        layer
        for layer in model._flatten_layers()
        if isinstance(getattr(layer, "_random_generator", None), backend.RandomGenerator)
    ]


def _generators(model: tf_keras.Model) -> list[tf.random.Generator]:
    """The generators of Keras's layers, which Keras leaves out of checkpoints."""
    generators = (getattr(layer._random_generator, "_generator", None) for layer in _random_layers(model))
    return [generator for generator in generators if generator is not None]


def _copy(source: Path, target: Path) -> None:
    """Copies history, best weights and checkpoints, if there are any."""
    history_file, weights_folder = source / HISTORY_FILE, (source / callbacks.BEST_WEIGHTS).parent
    if history_file.exists():
        shutil.copyfile(history_file, target / HISTORY_FILE)
    if weights_folder.exists():
        shutil.copytree(weights_folder, target / weights_folder.name, dirs_exist_ok=True)
    for checkpoint in (source / checkpoints.FOLDER).glob("[!.]*"):
        if checkpoint.is_file():
            _link(checkpoint, target / checkpoints.FOLDER / checkpoint.name)


def _link(source: Path, target: Path) -> None:
    """A second name for a file that is never written to again; a copy where the file system has no links."""
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        return
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
