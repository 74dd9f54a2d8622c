"""The sides of the comparisons, each called in a process of its own; see `children.call_in_child`."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from benchmarks.training import timing
from components.trainer import building, cluster, devices, train
from components.trainer.features import Feature
from components.trainer.inputs import Rows, Split
from components.trainer.job import Job, Result
from components.trainer.processes import Surroundings

LABELS = {
    "benchmarks.training.resnet": "label",
    "benchmarks.training.wide_and_deep": "big_tip",
}
WARM_UP_BATCHES = 20
KIB = 1024


@dataclasses.dataclass(frozen=True)
class Training:
    """A job's data, opened as `train.train` opens them."""

    job: Job
    recipe: Any
    features: list[Feature]
    data: train.Data

    @classmethod
    def open(cls, job: Job) -> Training:
        """Opens the job's data."""
        Path(job.model_run_dir).mkdir(parents=True, exist_ok=True)
        features, data = train.open_data(job, tft.TFTransformOutput(job.transform_graph))
        return cls(job, importlib.import_module(job.model_module), features, data)

    def build(self) -> tf_keras.Model:
        """The model, with the seed of the settings."""
        tf_keras.utils.set_random_seed(self.job.settings.seed)
        return building.build(self.recipe, self.features, self.job.settings)

    def fit(self, model: tf_keras.Model) -> Result:
        """Trains the model as the Trainer does."""
        return train.fit(model, self.recipe, self.job, self.data, tf.distribute.get_strategy())


def new_job(module: str, data: Mapping[str, str], settings: Mapping[str, Any]) -> Job:
    """A job in a new temporary folder.

    Args:
        module: The recipe's model.py, or its replacement.
        data: See `bench.prepare_noise_images`.
        settings: The recipe's `trainer` section.
    """
    folder = tempfile.mkdtemp(prefix="millrace-bench-job-", dir=Path(data["graph"]).parent)
    return Job.model_validate(
        {
            "train_files": [str(path) for path in sorted(Path(data["train"]).iterdir())],
            "eval_files": [str(path) for path in sorted(Path(data["eval"]).iterdir())],
            "transform_graph": data["graph"],
            "model_module": module,
            "label": LABELS[module],
            "settings": settings,
            "serving_model_dir": f"{folder}/model",
            "model_run_dir": f"{folder}/run",
            "checkpoint_root": f"{folder}/checkpoints",
        }
    )


def whole_job(module: str, data: Mapping[str, str], settings: Mapping[str, Any]) -> list[list[float]]:
    """Trains and exports as the pipeline's Trainer does, with as many workers as the settings say.

    Returns:
        See `EpochTimer.epochs`; those of the slowest worker.
    """
    job = new_job(module, data, settings)
    times = _timed_in(job)
    if cluster.is_needed(job.settings):
        cluster.train(job, Surroundings())
    else:
        train.train(job)
    return _slowest(times)["epochs"]


def our_fit(module: str, data: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Trains as the pipeline's Trainer does, from TFRecords, with the callbacks of every run, and exports nothing.

    Returns:
        `epochs` and `executions`, see `EpochTimer`; `peak_bytes`, the process's peak resident set, including imports;
        `peak_bytes_before`, the same before the fit; `weights`, a file of all trained weights, float32 [number of
        weights].
    """
    job = new_job(module, data, settings)
    times = _timed_in(job)
    with devices.precision_policy(job.settings.precision):
        training = Training.open(job)
        model = training.build()
        before = _peak_bytes()
        training.fit(model)
    peak = _peak_bytes()
    weights = f"{job.model_run_dir}/weights.npy"
    np.save(weights, np.concatenate([weight.numpy().astype(np.float32).ravel() for weight in model.weights]))
    return {**_slowest(times), "peak_bytes": peak, "peak_bytes_before": before, "weights": weights}


def bare_fit(module: str, data: Mapping[str, str], settings: Mapping[str, Any]) -> list[list[float]]:
    """Trains the same model with Keras's own `fit`, from arrays in memory, without augmentation, callbacks or
    validation.

    Returns:
        See `EpochTimer.epochs`.
    """
    job = new_job(module, data, settings)
    with devices.precision_policy(job.settings.precision):
        training = Training.open(job)
        split = training.data.train
        columns, labels = next(iter(split.evaluation_batches(job.settings.input).rebatch(split.rows)))
        arrays = {name: column.numpy() for name, column in columns.items()}, labels.numpy()
        tf_keras.utils.set_random_seed(job.settings.seed)
        model = training.recipe.build_model(training.features, job.settings.params)
        arguments = training.recipe.compile_arguments(job.settings.params)
        model.compile(**arguments, steps_per_execution=job.settings.steps_per_execution)
        timer = timing.EpochTimer()
        model.fit(
            *_whole_batches(arrays, job.settings.batch_size),
            batch_size=job.settings.batch_size,
            epochs=job.settings.epochs,
            verbose=2,
            callbacks=[timer],
        )
    return timer.epochs


def input_alone(module: str, data: Mapping[str, str], settings: Mapping[str, Any], batches: int) -> float:
    """Reads training batches, augmented, and does nothing with them.

    Returns:
        Seconds per batch.
    """
    job = new_job(module, data, settings)
    training = Training.open(job)
    augment = train.augmentation(training.recipe, job.settings)
    iterator = iter(
        training.data.train.training_batches(job.settings.batch_size, job.settings.seed, job.settings.input, augment)
    )
    for _ in range(WARM_UP_BATCHES):
        next(iterator)
    start = time.perf_counter()
    for _ in range(batches):
        next(iterator)
    return (time.perf_counter() - start) / batches


def cross_validate(
    module: str, data: Mapping[str, str], settings: Mapping[str, Any], seeds: int, folds: int
) -> list[bool]:
    """Returns whether the predicted class of each row of both splits is right, once per seed, by a model new to the
    row.

    Args:
        module: See `new_job`.
        data: See `new_job`.
        settings: The recipe's `trainer` section; the seed is replaced by 1 to `seeds`.
        seeds: The number of seeds; each also deals the rows into new folds.
        folds: The number of folds; a model trains on all but one.
    """
    is_correct: list[bool] = []
    for seed in range(1, seeds + 1):
        job = new_job(module, data, {**settings, "seed": seed})
        with devices.precision_policy(job.settings.precision):
            training = Training.open(job)
            # The seed deals the same folds for every precision.
            for fold in _folds(training.data, seed, folds):
                is_correct += map(bool, _are_right(dataclasses.replace(training, data=fold)))
    return is_correct


def _are_right(training: Training) -> Any:
    """Trains, and returns for each row of the eval split whether its predicted class is right."""
    model = training.build()
    training.fit(model)
    evaluation = training.data.eval
    inputs, labels = evaluation.layout.split(evaluation.columns or {})
    return np.argmax(model.predict(inputs, verbose=0), axis=1) == labels.numpy()  # type: ignore[union-attr]


def _folds(data: train.Data, seed: int, folds: int) -> Iterator[train.Data]:
    learned, evaluated = data.train.columns or {}, data.eval.columns or {}
    columns = {name: tf.concat([learned[name], evaluated[name]], axis=0) for name in learned}
    parts = np.array_split(np.random.default_rng(seed).permutation(data.train.rows + data.eval.rows), folds)
    for number, part in enumerate(parts):
        learned_rows = np.concatenate([*parts[:number], *parts[number + 1 :]])
        taken = _take(data.train, columns, learned_rows), _take(data.eval, columns, part)
        yield train.Data(*taken, data.labels)


def _take(split: Split, columns: Rows, rows: Any) -> Split:
    return Split([], split.layout, len(rows), {name: tf.gather(column, rows) for name, column in columns.items()})


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def _timed_in(job: Job) -> Path:
    folder = Path(job.model_run_dir, "times")
    folder.mkdir(parents=True)
    # Through the environment, which workers inherit.
    os.environ[timing.FOLDER_VARIABLE] = str(folder)
    return folder


def _slowest(folder: Path) -> dict[str, list[list[float]]]:
    timers: list[dict[str, list[list[float]]]] = [
        json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")
    ]
    return max(timers, key=lambda timer: sum(wall for wall, _ in timer["epochs"]))


def _whole_batches(arrays: tuple[dict[str, Any], Any], batch_size: int) -> tuple[dict[str, Any], Any]:
    columns, labels = arrays
    rows = len(labels) // batch_size * batch_size
    return {name: column[:rows] for name, column in columns.items()}, labels[:rows]
