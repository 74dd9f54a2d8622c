"""What lets an interrupted training go on as if it had never stopped: all of its state, kept after each epoch."""

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

from components.trainer import callbacks, devices
from contracts.file_names import HISTORY_FILE

COUNTERS: Mapping[type[tf_keras.callbacks.Callback], Sequence[str]] = {
    tf_keras.callbacks.EarlyStopping: ("best", "best_epoch", "wait", "stopped_epoch"),
    tf_keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
    tf_keras.callbacks.ModelCheckpoint: ("best",),
}
"""What callbacks count from epoch to epoch, by their type."""

CHECKPOINT_FOLDER = "checkpoint"
STATE_FILE = "state.json"
BEST_WEIGHTS_FILE = "early_stopping.npz"


class TrainingState(tf_keras.callbacks.Callback):
    """Keeps the state of one `fit` after each epoch; the last callback, so that the others have counted the epoch.

    TensorFlow's checkpoint holds the model, the optimizer and the layers' random generators. What no checkpoint holds
    lies in a folder beside it, `epoch-N`, that is written before the checkpoint N and removed after the next one: the
    checkpoint, which TensorFlow replaces in one go, decides which folder counts.

    Args:
        folder: Of this `fit` alone; all workers must see it.
        run_dir: The folder of the training's files, whose history and best weights are kept.
        model: Compiled.
        others: The callbacks before this one.
        strategy: In whose scope this is called.
    """

    def __init__(
        self,
        folder: str,
        run_dir: str,
        model: tf_keras.Model,
        others: Sequence[tf_keras.callbacks.Callback],
        strategy: tf.distribute.Strategy,
    ) -> None:
        super().__init__()
        # Values that each worker has its own of can only be read by all workers together, so that all of them save.
        self._chief_worker_only = False
        self._folder = Path(folder)
        self._run_dir = Path(run_dir)
        self._counting = [callback for callback in others if type(callback) in COUNTERS]
        self._is_chief = devices.is_chief(strategy)
        generators = {f"generator_{number}": one for number, one in enumerate(_generators(model))}
        self._checkpoint = tf.train.Checkpoint(model=model, **generators)
        self._restored: dict[str, Any] | None = None
        self._best_weights: list[Any] | None = None
        self._trained_steps = 0

    def restore(self, initial_epoch: int, epochs: int, steps_per_epoch: int) -> int:
        """Restores what was kept, but for the callbacks' counters, which Keras sets to zero as `fit` begins.

        Args:
            initial_epoch: Where this `fit` begins if nothing was kept.
            epochs: Where it ends.
            steps_per_epoch: Batches an epoch.

        Returns:
            The epoch to go on with; `epochs` if there is nothing left to train.
        """
        latest = tf.train.latest_checkpoint(str(self._folder / CHECKPOINT_FOLDER))
        if latest is None:
            return initial_epoch
        self._checkpoint.restore(latest)
        epoch = int(latest.rpartition("-")[2])
        kept = self._epoch_folder(epoch)
        self._restored = json.loads((kept / STATE_FILE).read_text(encoding="utf-8"))
        if (kept / BEST_WEIGHTS_FILE).exists():
            with np.load(kept / BEST_WEIGHTS_FILE) as arrays:
                self._best_weights = [arrays[name] for name in arrays.files]
        if self._is_chief:
            _copy(kept, self._run_dir)
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
        # Counts the steps that TensorBoard's curves are drawn over.
        self.model._train_counter.assign(self._trained_steps)
        for callback, counters in zip(self._counting, self._restored["counters"], strict=True):
            vars(callback).update(counters)
            if isinstance(callback, tf_keras.callbacks.EarlyStopping):
                callback.best_weights = self._best_weights

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras's hook."""
        done = epoch + 1
        if self._is_chief:
            self._keep_what_no_checkpoint_holds(done)
        folder = self._checkpoint_folder()
        tf.train.CheckpointManager(self._checkpoint, str(folder), max_to_keep=1).save(checkpoint_number=done)
        if not self._is_chief:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for kept in self._folder.glob("epoch-*"):
            if kept != self._epoch_folder(done):
                shutil.rmtree(kept)

    def _keep_what_no_checkpoint_holds(self, epoch: int) -> None:
        folder = self._epoch_folder(epoch)
        # An interruption may have left one that is not whole.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        counters = [
            # Of a NumPy number JSON knows nothing.
            {name: np.asarray(getattr(one, name)).item() for name in COUNTERS[type(one)]}
            for one in self._counting
        ]
        state = {"counters": counters, "stopped": bool(self.model.stop_training)}
        (folder / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")
        for one in self._counting:
            if isinstance(one, tf_keras.callbacks.EarlyStopping) and one.best_weights is not None:
                np.savez(folder / BEST_WEIGHTS_FILE, *one.best_weights)
        _copy(self._run_dir, folder)

    def _epoch_folder(self, epoch: int) -> Path:
        return self._folder / f"epoch-{epoch}"

    def _checkpoint_folder(self) -> Path:
        if self._is_chief:
            return self._folder / CHECKPOINT_FOLDER
        task = devices.cluster_config()["task"]
        return self._folder / f"{task['type']}-{task['index']}"


def use_generators(model: tf_keras.Model, seed: int) -> list[backend.RandomGenerator]:
    """Lets the layers draw random numbers, as for dropout, from generators whose state can be kept.

    Where a layer is not told otherwise, Keras draws by operations whose counters nobody can read. The generators begin
    with the state that TensorFlow gives these operations on one device, so that they draw the same numbers.

    Args:
        model: Not compiled, its strategy in scope.
        seed: The seed of the training.

    Returns:
        What was changed, for `drop_generators`.
    """
    changed = []
    for number, layer in enumerate(_random_layers(model)):
        source = layer._random_generator
        if source._rng_type == backend.RandomGenerator.RNG_LEGACY_STATEFUL:
            own_seed = number if source._seed is None else source._seed
            source._generator = tf.random.Generator.from_state([0, own_seed, seed], alg="philox")
            source._rng_type = backend.RandomGenerator.RNG_STATEFUL
            source._built = True
            changed.append(source)
    return changed


def drop_generators(changed: Sequence[backend.RandomGenerator]) -> None:
    """Undoes `use_generators`: an exported model draws nothing, and needs no generator's state."""
    for source in changed:
        source._generator = None
        source._rng_type = backend.RandomGenerator.RNG_LEGACY_STATEFUL


def _random_layers(model: tf_keras.Model) -> list[tf_keras.layers.Layer]:
    return [
        layer
        for layer in model._flatten_layers()
        if isinstance(getattr(layer, "_random_generator", None), backend.RandomGenerator)
    ]


def _generators(model: tf_keras.Model) -> list[tf.random.Generator]:
    """Those of Keras's layers, which Keras leaves out of checkpoints."""
    found = (getattr(layer._random_generator, "_generator", None) for layer in _random_layers(model))
    return [generator for generator in found if generator is not None]


def _copy(source: Path, target: Path) -> None:
    """Copies history and best weights, where there are any."""
    history, best = source / HISTORY_FILE, (source / callbacks.BEST_WEIGHTS).parent
    if history.exists():
        shutil.copyfile(history, target / HISTORY_FILE)
    if best.exists():
        shutil.copytree(best, target / best.name, dirs_exist_ok=True)
