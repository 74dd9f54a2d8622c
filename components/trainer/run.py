"""Training, from transformed examples to a SavedModel: strategy, precision, data, model, fit, export."""

from __future__ import annotations

import importlib
import sys

import tensorflow_transform as tft
import tf_keras
from tfx.components.trainer.fn_args_utils import FnArgs

from components.autograph import bypass_libraries
from components.trainer import (
    building,
    cluster,
    debugging,
    export,
    features,
    fitting,
    inputs,
    precision,
    recompute,
    strategies,
    warm_up,
)
from components.trainer.job import Job


def run_fn(fn_args: FnArgs) -> None:
    """TFX's entry point for the Trainer.

    Args:
        fn_args: TFX's training arguments; `custom_config` holds `model_module` (import path of the recipe's model.py),
            `label` (the transformed feature to predict), `trainer` (a TrainerSettings as a dict), and perhaps
            `checkpoint_root` (where an interrupted training is kept), `raw_eval_files` (raw rows for warm-up requests)
            and `class_names` (the label's classes by id).

    Raises:
        TrainingError: Settings, data, model and devices do not go together, or training went wrong.
    """
    job = Job.from_fn_args(fn_args)
    if cluster.is_needed(job.settings):
        cluster.train(job)
    else:
        train(job)


def train(job: Job) -> None:
    """Trains in this process, alone or as one of several, and exports the model if this is the chief."""
    bypass_libraries()
    settings = job.settings
    tf_keras.utils.set_random_seed(settings.seed)
    recipe = importlib.import_module(job.model_module)
    transform_output = tft.TFTransformOutput(job.transform_graph)
    strategies.check_files(job.train_files, settings)
    strategy = strategies.create(settings)

    with precision.policy(settings.precision, strategies.can_scale_losses(strategy)) as policy:
        schema = transform_output.transformed_metadata.schema
        model_features = features.from_schema(schema, job.label, settings.sample_weight)
        layout = inputs.Layout.of(transform_output, model_features, job.label, settings.sample_weight)
        data = fitting.Data(
            inputs.open_split(job.train_files, layout, settings.input),
            inputs.open_split(job.eval_files, layout, settings.input),
        )
        if settings.debug:
            debugging.check_values(data.train, job.train_files)
        with strategy.scope():
            model = building.build(recipe, model_features, settings)
        note = strategies.describe(strategy, policy)
        sys.stdout.write(f"Training in {note}\n")
        result = fitting.fit(model, recipe, job, data, strategy, note)
        model = strategies.alone(model, strategy, lambda: building.build(recipe, model_features, settings))
        recompute.undo(model)

    if strategies.is_chief(strategy):
        options = export.Options(
            serving_outputs=export.serving_outputs_of(recipe, settings.params),
            embedding_layer=settings.embedding_layer,
            raw_examples=warm_up.read_rows(job.raw_eval_files),
            class_names=job.class_names,
            validation_metrics=result.validation_metrics,
            training={"settings": settings.model_dump(mode="json"), "precision": policy, **result.facts},
        )
        export.save(model, transform_output, job.label, job.serving_model_dir, options)
        fitting.forget_backup(job)
