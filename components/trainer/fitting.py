"""The fit: how long, with which callbacks, in which phases."""

from __future__ import annotations

import functools
import math
import shutil
import types
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer import building, callbacks, card, debugging, labels, strategies
from components.trainer.building import Plan
from components.trainer.inputs import Augment, Split, batches_per_pass
from components.trainer.job import Job
from components.trainer.settings import TrainerSettings


@dataclass(frozen=True)
class Data:
    """The splits to learn from and to validate with."""

    train: Split
    eval: Split


@dataclass(frozen=True)
class Result:
    """How a training went.

    Attributes:
        validation_metrics: Those of the exported model by name, without `val_`; None is a value that is no number.
        facts: For the model's card: epochs, steps, replicas, and the strategy in words.
    """

    validation_metrics: dict[str, float | None]
    facts: dict[str, Any]


def fit(
    model: tf_keras.Model,
    recipe: types.ModuleType,
    job: Job,
    data: Data,
    strategy: tf.distribute.Strategy,
    note: str,
) -> Result:
    """Trains the model, phase by phase, from where an interrupted training of the same job stopped.

    Args:
        model: Not compiled.
        recipe: The recipe's model.py.
        job: What is trained.
        data: What is learned from.
        strategy: In whose scope the model was built.
        note: What the live table shows beside the metrics.

    Returns:
        How it went; the model is the one to export.

    Raises:
        TrainingError: There is less data than a batch, the model has not an output for each class, or the loss became
            NaN.
    """
    settings = job.settings
    plans = schedule(settings, data.train.rows)
    make_batches = functools.partial(
        data.train.training_batches,
        settings.batch_size,
        settings.seed,
        settings.input,
        _augmentation(recipe, settings),
    )
    batches = make_batches()
    if settings.debug:
        debugging.check_shapes(model, next(iter(batches)))
    history: dict[str, list[float]] = {}
    for number, plan in enumerate(plans):
        with strategy.scope():
            building.compile_model(model, recipe, settings, plan, batches.element_spec[1])
        if number == 0:
            labels.check(model, {"train": data.train, "eval": data.eval}, job.class_names)
        with debugging.checked_numerics(settings.debug):
            history = model.fit(
                strategies.fed(make_batches, strategy),
                initial_epoch=plan.initial_epoch,
                epochs=plan.epochs,
                steps_per_epoch=plan.steps_per_epoch,
                validation_data=data.eval.evaluation_batches(settings.input),
                # Said outright, for several steps an execution cannot find the end of the data by themselves.
                validation_steps=data.eval.evaluation_steps,
                callbacks=_callbacks(job, number, plans[-1].epochs, batches, strategy, note),
                verbose=2,
            ).history
    strategies.wait_for_all(strategy)
    history = _judged(model, job, data.eval, history)
    return Result(card.last_validation_metrics(history), _facts(plans[-1], strategy))


def forget_backup(job: Job) -> None:
    """Removes what was kept for the case that the training is interrupted."""
    if job.checkpoint_dir:
        shutil.rmtree(job.checkpoint_dir, ignore_errors=True)


def schedule(settings: TrainerSettings, rows: int) -> list[Plan]:
    """What to fit one after the other.

    With `epochs` and `phases`, an epoch is one pass over `rows` in whole batches. With `train_steps`, the steps are
    spread evenly over as many epochs as they make passes, rounded up to whole epochs.

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


def _judged(model: tf_keras.Model, job: Job, split: Split, history: dict[str, list[float]]) -> dict[str, list[float]]:
    """Takes the best weights where they are kept; returns the validation metrics of the weights that the model has."""
    wanted = job.settings.callbacks
    if wanted.best_checkpoint:
        model.load_weights(f"{job.model_run_dir}/{callbacks.BEST_WEIGHTS}").expect_partial()
    if wanted.best_checkpoint or wanted.early_stopping or not history:
        # The model is not, or not surely, the last epoch's.
        return _evaluated(model, split, job.settings)
    return history


def _facts(last: Plan, strategy: tf.distribute.Strategy) -> dict[str, Any]:
    return {
        "epochs": last.epochs,
        "steps_per_epoch": last.steps_per_epoch,
        "replicas": strategy.num_replicas_in_sync,
        "strategy": type(strategy).__name__.lstrip("_"),
    }


def _evaluated(model: tf_keras.Model, split: Split, settings: TrainerSettings) -> dict[str, list[float]]:
    batches = split.evaluation_batches(settings.input)
    found = model.evaluate(batches, steps=split.evaluation_steps, verbose=0, return_dict=True)
    return {f"val_{name}": [value] for name, value in found.items()}


def _augmentation(recipe: types.ModuleType, settings: TrainerSettings) -> Augment | None:
    augment = getattr(recipe, "augment", None)
    return functools.partial(augment, params=settings.params) if augment else None


def _callbacks(
    job: Job, phase: int, epochs: int, batches: tf.data.Dataset, strategy: tf.distribute.Strategy, note: str
) -> list[tf_keras.callbacks.Callback]:
    wanted = job.settings.callbacks
    chosen = callbacks.from_settings(wanted, job.model_run_dir)
    if wanted.backup and job.checkpoint_dir:
        # A folder a phase: a phase that was done is skipped, for its backup says that all its epochs were.
        folder = f"{job.checkpoint_dir}/phase-{phase}"
        chosen.insert(0, tf_keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False))
    if wanted.tensorboard and wanted.tensorboard.example_images and strategies.is_chief(strategy):
        chosen.append(callbacks.ExampleImages(batches, wanted.tensorboard.example_images, job.model_run_dir))
    if strategies.is_chief(strategy):
        chosen.append(tf_keras.callbacks.CSVLogger(f"{job.model_run_dir}/{callbacks.HISTORY_FILE}", append=phase > 0))
    stepwise = not isinstance(strategy, tf.distribute.ParameterServerStrategy)
    return [*chosen, *callbacks.watchers(epochs, note, stepwise)]
