"""A recipe's own training: the optional function `train(training)` of its model.py, in place of `model.fit`."""

from __future__ import annotations

import csv
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.trainer import building, devices, heads, schedule
from components.trainer.features import Feature
from components.trainer.inputs import Rows, Split
from components.trainer.job import Job, Result
from components.trainer.settings import TrainerSettings, own_training_refusal
from contracts.errors import TrainingError
from contracts.file_names import HISTORY_FILE

Arrays: TypeAlias = tuple[dict[str, npt.NDArray[Any]], Any, npt.NDArray[Any] | None]
"""Features by name, the label (several: by output), and the sample weights if there are any."""


class Fit(Protocol):
    """Compiles and fits a model as the job's settings say."""

    def __call__(self, model: tf_keras.Model, *, job: Job) -> Result:
        """See `train.fit`."""


class Training:
    """What `train(training)` in a recipe's model.py is given; it returns the model to export.

    Attributes:
        features: The model's inputs, as `build_model` gets them.
        params: `trainer.params`.
        settings: The whole `trainer` section.
        run_dir: The folder that becomes the ModelRun artifact, for files of the training's own.
        state_dir: A folder that outlives an interruption and is there again when the same training is resumed; it is
            removed when the model is exported. None if `trainer.callbacks.backup` is off.

    Args:
        recipe: The recipe's model.py.
        job: The training.
        features: The model's inputs.
        splits: The opened splits, `train` and `eval`.
        fit: See `Fit`.
    """

    def __init__(
        self,
        recipe: types.ModuleType,
        job: Job,
        features: list[Feature],
        splits: Mapping[str, Split],
        fit: Fit,
    ) -> None:
        self.features = features
        self.params: Mapping[str, Any] = job.settings.params
        self.settings = job.settings
        self.run_dir = Path(job.model_run_dir)
        self.state_dir = _state_dir(job)
        self._recipe, self._job, self._splits, self._fit = recipe, job, splits, fit
        self._fitted: tuple[tf_keras.Model, Result] | None = None
        self._starts: dict[tf_keras.Model, list[Any]] = {}
        self._epochs = 0

    def build(self, **params: Any) -> tf_keras.Model:
        """Returns a new model of the recipe's `build_model`, not compiled.

        Args:
            params: Replace those of `trainer.params`.
        """
        settings = self._with(params)
        build = functools.partial(building.build, self._recipe, self.features, settings)
        model, why_float32 = building.build_to_suit(build, settings)
        if why_float32:
            self.log(why_float32)
        return model

    def compile(self, model: tf_keras.Model, /, **params: Any) -> None:
        """Compiles a model with the recipe's `compile_arguments` as they stand, without `trainer.optimization`.

        Args:
            model: Keeps its weights.
            params: Replace those of `trainer.params`.
        """
        arguments = self._recipe.compile_arguments(self._with(params).params)
        heads.check_arguments(model, arguments)
        model.compile(**arguments)

    def fit(self, model: tf_keras.Model, /, epochs: int | None = None, **params: Any) -> tf_keras.Model:
        """Trains a model as the Trainer does without this function, and resumes it if it was interrupted.

        Args:
            model: Not compiled; of the same weights each time that this training is resumed.
            epochs: Replaces `trainer.epochs`, `train_steps` or `phases`.
            params: Replace those of `trainer.params`.

        Returns:
            The model.

        Raises:
            TrainingError: It is called again: history and state are those of one fit.
        """
        if self._fitted is not None:
            raise TrainingError(
                "train in model.py calls training.fit twice, expected once: history and resuming are those of one fit.",
                "Divide one training by trainer.phases, or write the other one as a loop.",
            )
        settings = self._with(params)
        if epochs is not None:
            settings = settings.model_copy(update={"epochs": epochs, "train_steps": None, "phases": []})
        root = self._job.checkpoint_dir and f"{self._job.checkpoint_dir}/fit"
        job = self._job.model_copy(update={"settings": settings, "checkpoint_root": root})
        self._fitted = (model, self._fit(model, job=job))
        return model

    def fit_rows(
        self,
        model: tf_keras.Model,
        inputs: Mapping[str, npt.NDArray[Any]],
        label: npt.NDArray[Any],
        weights: npt.NDArray[Any],
        /,
        **params: Any,
    ) -> None:
        """Trains a model on some rows as `fit` does on all, without history, callbacks and resuming.

        It is the first phase where there are several.

        Args:
            model: Keeps its weights; if it was trained by this function before, its optimizer begins anew.
            inputs: Features by name, each [rows, …].
            label: [rows]; there is a single label.
            weights: [rows]; they count where `trainer.sample_weight` is set.
            params: Replace those of `trainer.params`.
        """
        layout = self._split("train").layout
        named = {**inputs, str(layout.label): label}
        if layout.sample_weight:
            named[layout.sample_weight] = weights.astype(np.float32)
        split = Split([], layout, len(label), {name: tf.constant(column) for name, column in named.items()})
        given = self._with(params)
        settings = given.model_copy(update={"batch_size": min(given.batch_size, split.rows)})
        batches = split.training_batches(settings.batch_size, settings.seed, settings.input)
        [plan, *_] = schedule.plan_phases(settings, split.rows)
        if model in self._starts:
            for variable, value in zip(model.optimizer.variables, self._starts[model], strict=True):
                variable.assign(value)
        else:
            building.compile_model(model, self._recipe, settings, plan, split.first_rows())
            self._starts[model] = [variable.numpy() for variable in model.optimizer.variables]
        model.fit(batches, epochs=plan.epochs, steps_per_epoch=plan.steps_per_epoch, verbose=0)

    def batches(self, split: str = "train") -> tf.data.Dataset:
        """Batches of `(features, label)`, with the weights third where `trainer.sample_weight` is set.

        Args:
            split: `train` gives endless shuffled batches of `trainer.batch_size` rows, `eval` one pass in order.
        """
        if split == "eval":
            return self._split(split).evaluation_batches(self.settings.input)
        return self._split(split).training_batches(self.settings.batch_size, self.settings.seed, self.settings.input)

    def rows(self, split: str = "train") -> int:
        """The number of rows of a split."""
        return self._split(split).rows

    def arrays(self, split: str = "train", most: int | None = None) -> Arrays:
        """The rows of a split, in memory.

        Args:
            split: `train` or `eval`.
            most: The most rows, chosen by chance; None takes all.

        Returns:
            Features by name, each [rows, …]; the label [rows, …], or several by output; and the sample weights [rows],
            None without `trainer.sample_weight`.
        """
        opened = self._split(split)
        chosen = None
        if most is not None and most < opened.rows:
            chosen = np.sort(np.random.default_rng(self.settings.seed).choice(opened.rows, most, replace=False))
        parts: Any = opened.layout.split(_gathered(opened, chosen))
        inputs, labels, *weights = parts
        label = tf.nest.map_structure(lambda column: column.numpy(), labels)
        features = {name: column.numpy() for name, column in inputs.items()}
        return features, label, weights[0].numpy().reshape(-1) if weights else None

    def record(self, metrics: Mapping[str, float]) -> None:
        """Adds an epoch of a loop of the recipe's own to the history, which the report draws.

        Args:
            metrics: By name, the same names each time; those of the evaluation split begin with `val_`.
        """
        path = self.run_dir / HISTORY_FILE
        with path.open("a" if self._epochs else "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["epoch", *metrics])
            if not self._epochs:
                writer.writeheader()
            writer.writerow({"epoch": self._epochs, **{name: float(value) for name, value in metrics.items()}})
        self._epochs += 1

    def log(self, line: str) -> None:
        """Writes a line to the node's log at once."""
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def result(self, model: tf_keras.Model) -> Result:
        """How the model that `train` returned came out: as its fit left it, or as it is on the evaluation split."""
        if self._fitted is not None and self._fitted[0] is model:
            return self._fitted[1]
        metrics: dict[str, float] = {}
        if model._is_compiled:
            steps = self._split("eval").evaluation_steps
            metrics = model.evaluate(self.batches("eval"), steps=steps, verbose=0, return_dict=True)
        if not self._epochs and self._fitted is None:
            self.record({f"val_{name}": value for name, value in metrics.items()})
        finite = {name: float(value) if np.isfinite(value) else None for name, value in metrics.items()}
        facts = self._fitted[1].facts if self._fitted else {"replicas": 1, "strategy": "train in model.py"}
        return Result(finite, dict(facts))

    def _with(self, params: Mapping[str, Any]) -> TrainerSettings:
        return self.settings.model_copy(update={"params": {**self.settings.params, **params}})

    def _split(self, name: str) -> Split:
        if name not in self._splits:
            raise TrainingError(f"train in model.py asks for the split {name!r}, expected train or eval.")
        return self._splits[name]


def function_of(recipe: types.ModuleType) -> Callable[[Training], tf_keras.Model] | None:
    """The function `train` of a recipe's model.py; None if it has none."""
    function = getattr(recipe, "train", None)
    return function if inspect.isfunction(function) else None


def on_one_device(settings: TrainerSettings) -> TrainerSettings:
    """The settings of a training by `train` in model.py.

    Raises:
        TrainingError: They, or TF_CONFIG, ask for several devices or processes, over which only `fit` can divide it.
    """
    received = "several tasks in TF_CONFIG" if devices.cluster_config() else settings.several_devices
    if received:
        raise TrainingError(*own_training_refusal("model.py", received))
    return settings.model_copy(update={"strategy": "one_device"})


def run(function: Callable[[Training], tf_keras.Model], training: Training) -> tuple[tf_keras.Model, Result]:
    """Trains by a recipe's `train`.

    Returns:
        The model to export, and how it came out.

    Raises:
        TrainingError: It returned anything but a tf_keras model of the transformed features, or one with an output in
            half precision.
    """
    model = function(training)
    building.check_inputs(model, training.features, "train")
    devices.check_outputs(model)
    return model, training.result(model)


def _gathered(split: Split, chosen: npt.NDArray[np.int64] | None) -> Rows:
    """All columns of a split, or of the chosen rows, ascending."""
    parts: list[Rows] = []
    start = 0
    for chunk in [split.columns] if split.columns is not None else split.chunks():
        rows = len(next(iter(chunk.values())))
        if chosen is not None:
            inside = chosen[(chosen >= start) & (chosen < start + rows)] - start
            chunk = {name: tf.gather(column, inside) for name, column in chunk.items()}
        parts.append(chunk)
        start += rows
    return {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}


def _state_dir(job: Job) -> Path | None:
    if job.checkpoint_dir is None or not job.settings.callbacks.backup:
        return None
    folder = Path(job.checkpoint_dir, "own")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
