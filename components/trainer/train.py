"""Training on one page, from transformed examples to a SavedModel.

Strategy, precision, data, model, restore, fit, export.
"""

from __future__ import annotations

import functools
import importlib
import math
import shutil
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from components.autograph import bypass_libraries
from components.trainer import (
    building,
    callbacks,
    checkpoints,
    checks,
    devices,
    disk_cache,
    export,
    features,
    inputs,
    labels,
    optimization,
    own_training,
    profiling,
    projector,
    resuming,
    schedule,
)
from components.trainer.features import Feature
from components.trainer.inputs import Augment, Split
from components.trainer.job import Job, Result
from components.trainer.schedule import Plan
from components.trainer.settings import TrainerSettings
from contracts.file_names import HISTORY_FILE


@dataclass(frozen=True)
class Data:
    """The splits to learn from and to validate with, and the values of their labels."""

    train: Split
    eval: Split
    labels: labels.Labels


def train(job: Job, progress: str | None = None) -> None:
    """Trains in this process, alone or as one of several, and exports the model if this is the chief.

    Args:
        job: The training.
        progress: The file for the training's progress; None writes none.
    """
    bypass_libraries()
    settings = job.settings
    tf_keras.utils.set_random_seed(settings.seed)
    recipe = importlib.import_module(job.model_module)
    transform_output = tft.TFTransformOutput(job.transform_graph)

    # Strategy
    own_train = own_training.function_of(recipe)
    devices.check_files(job.train_files, settings)
    strategy = devices.create_strategy(own_training.on_one_device(settings) if own_train else settings)

    # Precision, for everything that is built from here on until the model is trained
    precision = devices.precision_policy(settings.precision, not devices.is_parameter_server(strategy))
    with precision, disk_cache.cache_folder(settings.input) as cache_dir:
        # Data
        model_features, data = open_data(job, transform_output, cache_dir)
        if cache_dir:
            _log(f"Rows: {disk_cache.describe(cache_dir)}")
        if settings.debug:
            checks.check_values(data.train, job.train_files)

        # Model, restore and fit: see `fit` for what is restored in which order
        if own_train:
            splits = {"train": data.train, "eval": data.eval}
            as_set = functools.partial(fit, recipe=recipe, data=data, strategy=strategy, progress=progress)
            model, result = own_training.run(
                own_train, own_training.Training(recipe, job, model_features, splits, as_set)
            )
        else:
            build = functools.partial(building.build, recipe, model_features, settings)
            with strategy.scope():
                model, why_float32 = building.build_to_suit(build, settings)
            _log(*filter(None, [why_float32]))
            result = fit(model, recipe, job, data, strategy, progress)
            model = devices.on_one_device(model, strategy, build)
        policy = tf_keras.mixed_precision.global_policy().name
        optimization.undo_recompute(model)

    # Export
    if devices.is_chief(strategy):
        options = export.Options(
            serving_outputs=export.serving_outputs_of(recipe, settings.params),
            embedding_layer=settings.embedding_layer,
            raw_examples=export.read_warm_up_rows(job.raw_eval_files),
            class_names=class_names_of(recipe, job),
            validation_metrics=result.validation_metrics,
            training={"settings": settings.model_dump(mode="json"), "precision": policy, **result.facts},
        )
        export.save(model, transform_output, job.label, job.serving_model_dir, options)
        if job.checkpoint_dir:
            shutil.rmtree(job.checkpoint_dir, ignore_errors=True)


def open_data(
    job: Job, transform_output: tft.TFTransformOutput, cache_dir: Path | None = None
) -> tuple[list[Feature], Data]:
    """The model's features, and the splits that the transform graph's files hold.

    Args:
        job: The training.
        transform_output: The transform graph.
        cache_dir: See `inputs.open_split`.

    Raises:
        TrainingError: There is no such label, it is not there in every row, or the same in all.
    """
    settings = job.settings
    schema = transform_output.transformed_metadata.schema
    model_features = features.from_schema(schema, job.label, settings.sample_weight)
    layout = inputs.Layout.from_transform(transform_output, model_features, job.label, settings.sample_weight)
    labels.check_kinds(layout)
    train_split, eval_split = (
        inputs.open_split(files, layout, settings.input, cache_dir, name)
        for name, files in (("train", job.train_files), ("eval", job.eval_files))
    )
    values = labels.read_labels({"train": train_split, "eval": eval_split})
    labels.check_values(values, job.class_names)
    return model_features, Data(train_split, eval_split, values)


def fit(
    model: tf_keras.Model,
    recipe: types.ModuleType,
    job: Job,
    data: Data,
    strategy: tf.distribute.Strategy,
    progress: str | None = None,
) -> Result:
    """Trains the model, phase by phase, from where an interrupted training of the same job stopped.

    Args:
        model: Not compiled; when this returns, it is the one to export.
        recipe: The recipe's model.py.
        job: The training.
        data: The splits.
        strategy: The strategy in whose scope the model was built.
        progress: See `train`.

    Returns:
        How it went.

    Raises:
        TrainingError: There are fewer rows than one batch needs, the model lacks an output for some class, or the loss
            became NaN.
    """
    settings = job.settings
    note = devices.describe_strategy(strategy, tf_keras.mixed_precision.global_policy().name)
    _log(f"Training in {note}")
    plans = schedule.plan_phases(settings, data.train.rows)
    if profiled := _profiled_steps(settings):
        profiling.check_steps(profiled, plans)
    make_batches = functools.partial(
        data.train.training_batches, settings.batch_size, settings.seed, settings.input, augmentation(recipe, settings)
    )
    batches = make_batches()
    _log(*schedule.describe_batches(settings, plans, data.train, data.eval, strategy.num_replicas_in_sync))
    _log(*building.describe_parameters(model))
    if settings.debug:
        checks.check_shapes(model, next(iter(batches)))
    first_rows = data.train.first_rows()
    history: dict[str, list[float]] = {}
    # How an interrupted training is restored. The order is important.
    # 1. `build_model` sets the weights, seeded or pre-trained.
    # 2. Each phase compiles the model: a new optimizer, with its variables, so that there is something to restore into.
    # 3. Before `fit`, the state after the last whole epoch is restored: weights, optimizer (moments, the learning rate,
    #    the loss scale, and the steps that a schedule counts), the layers' random generators, history.csv and best
    #    weights.
    # 4. `fit` is given the epoch to continue with, and the batches from that epoch's first step on. A phase that was
    #    finished has no epochs left.
    # 5. When `fit` begins, the callbacks reset themselves. TrainingState, the last one, then restores the counters of
    #    early stopping, reduce_lr_on_plateau and best_checkpoint, and early stopping's best weights.
    # 6. After the last phase, `_final_history` loads the weights of the best epoch if `best_checkpoint` is set.
    # Not restored: TensorBoard's curves of earlier epochs, and the random state of recipe layers that draw numbers by
    # tf.random.uniform and the like; they start over.
    for number, plan in enumerate(plans):
        with strategy.scope():
            # Parameter servers do not support generators, and do not train in a repeatable order anyway.
            changed = [] if devices.is_parameter_server(strategy) else resuming.use_generators(model, settings.seed)
            building.compile_model(model, recipe, settings, plan, first_rows)
        if number == 0:
            labels.check_outputs(model, data.train, data.labels, job.class_names)
        chosen, initial_epoch = _callbacks_and_start(model, job, number, plan, batches, strategy)
        start_step = (initial_epoch - plan.initial_epoch) * plan.steps_per_epoch
        with checks.checked_numerics(settings.debug), checks.explained_step(model, first_rows):
            history = model.fit(
                devices.distributed_batches(functools.partial(make_batches, start_step=start_step), strategy),
                initial_epoch=initial_epoch,
                epochs=plan.epochs,
                steps_per_epoch=plan.steps_per_epoch,
                validation_data=data.eval.evaluation_batches(settings.input),
                # Needed because an execution of several steps cannot detect the end of the data.
                validation_steps=data.eval.evaluation_steps,
                callbacks=[
                    *callbacks.watchers(plans[-1].epochs, note, not devices.is_parameter_server(strategy), progress),
                    *callbacks.of_recipe(recipe, settings.params, job.model_run_dir),
                    *chosen,
                ],
                verbose=2,
            ).history
        resuming.drop_generators(changed)
    devices.wait_for_all(strategy)
    history = _final_history(model, job, data.eval, history)
    return Result(last_validation_metrics(history), _facts(plans[-1], strategy))


def last_validation_metrics(history: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """The validation metrics of the last epoch; None stands for a non-finite value.

    Args:
        history: Values by metric, one per epoch: the `history` of tf_keras.callbacks.History.
    """
    last = {name[4:]: float(values[-1]) for name, values in history.items() if name.startswith("val_")}
    return {name: value if math.isfinite(value) else None for name, value in last.items()}


def class_names_of(recipe: types.ModuleType, job: Job) -> list[str] | None:
    """The classes by id: those of the data, else `CLASS_NAMES` in the recipe's model.py; None if there are none."""
    names = job.class_names or getattr(recipe, "CLASS_NAMES", None)
    return list(names) if names else None


def augmentation(recipe: types.ModuleType, settings: TrainerSettings) -> Augment | None:
    """The optional function `augment(features, seed, params)` of a recipe's model.py, with `params` bound."""
    augment = getattr(recipe, "augment", None)
    return functools.partial(augment, params=settings.params) if augment else None


def _callbacks_and_start(
    model: tf_keras.Model,
    job: Job,
    phase: int,
    plan: Plan,
    batches: tf.data.Dataset,
    strategy: tf.distribute.Strategy,
) -> tuple[list[tf_keras.callbacks.Callback], int]:
    """The callbacks that recipe.yaml asks for, then the one that keeps the state; and the epoch to start with."""
    settings = job.settings.callbacks
    chosen = callbacks.from_settings(settings, job.model_run_dir)
    if settings.checkpoints:
        chosen.append(
            checkpoints.new_checkpoints(
                settings.checkpoints, model, job.model_run_dir, plan.steps_per_epoch, devices.is_chief(strategy)
            )
        )
    initial_epoch, state = plan.initial_epoch, None
    if settings.backup and job.checkpoint_dir:
        # One folder per phase: a finished phase is skipped, because its state says that all its epochs are done.
        folder = f"{job.checkpoint_dir}/phase-{phase}"
        with strategy.scope():
            state = resuming.TrainingState(folder, job.model_run_dir, model, chosen, strategy)
            initial_epoch = state.restore(plan.initial_epoch, plan.epochs, plan.steps_per_epoch)
    profiled = _profiled_steps(job.settings)
    if profiled and profiling.is_within(profiled, plan):
        # Beside the curves: TensorBoard's plugin looks for profiles only in folders that have curves.
        folder = f"{job.model_run_dir}/{callbacks.TRAIN_CURVES}"
        chosen.append(profiling.Profile(profiled, plan.steps_per_epoch, folder, devices.is_chief(strategy)))
    if devices.is_chief(strategy):
        if settings.tensorboard and settings.tensorboard.example_images:
            num_images = settings.tensorboard.example_images
            shown_batches = batches.skip(initial_epoch - plan.initial_epoch)
            chosen.append(callbacks.ExampleImages(shown_batches, num_images, job.model_run_dir))
        if settings.tensorboard and settings.tensorboard.embeddings:
            transform_output = tft.TFTransformOutput(job.transform_graph)
            embeddings = settings.tensorboard.embeddings
            chosen.append(projector.Projector(embeddings, model, transform_output, job.model_run_dir))
        history_path = Path(job.model_run_dir, HISTORY_FILE)
        goes_on = phase > 0 or (state is not None and state.was_restored)
        chosen.append(tf_keras.callbacks.CSVLogger(str(history_path), append=goes_on))
    return [*chosen, *([state] if state else [])], initial_epoch


def _profiled_steps(settings: TrainerSettings) -> tuple[int, int] | None:
    tensorboard = settings.callbacks.tensorboard
    return tensorboard.profile_steps if tensorboard else None


def _final_history(
    model: tf_keras.Model, job: Job, split: Split, history: dict[str, list[float]]
) -> dict[str, list[float]]:
    """Loads the best weights if they were kept; returns the validation metrics of the model's final weights."""
    settings = job.settings.callbacks
    if settings.best_checkpoint:
        model.load_weights(f"{job.model_run_dir}/{callbacks.BEST_WEIGHTS}").expect_partial()
    if history and not settings.best_checkpoint and not settings.early_stopping:
        return history
    # The model is not, or may not be, that of the last epoch.
    batches = split.evaluation_batches(job.settings.input)
    metrics = model.evaluate(batches, steps=split.evaluation_steps, verbose=0, return_dict=True)
    return {f"val_{name}": [value] for name, value in metrics.items()}


def _facts(last: Plan, strategy: tf.distribute.Strategy) -> dict[str, Any]:
    return {
        "epochs": last.epochs,
        "steps_per_epoch": last.steps_per_epoch,
        "replicas": strategy.num_replicas_in_sync,
        "strategy": type(strategy).__name__.lstrip("_"),
    }


def _log(*lines: str) -> None:
    """Writes lines to the node's log at once, since the next step may take long."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
