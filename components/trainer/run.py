"""Training, from transformed examples to a SavedModel: data, model, fit, export."""

from __future__ import annotations

import importlib
import math
import types

import tensorflow_transform as tft
import tf_keras
from tfx.components.trainer.fn_args_utils import FnArgs
from tfx.dsl.io import fileio

from components.autograph import bypass_libraries
from components.errors import TrainingError
from components.trainer import callbacks, card, export, features, inputs, warm_up
from components.trainer.settings import TrainerSettings


def run_fn(fn_args: FnArgs) -> None:
    """TFX's entry point for the Trainer.

    Args:
        fn_args: TFX's training arguments; `custom_config` holds `model_module` (import path of the recipe's model.py),
            `label` (the transformed feature to predict), `trainer` (a TrainerSettings as a dict), and perhaps
            `raw_eval_files` (raw rows for warm-up requests) and `class_names` (the label's classes by id).

    Raises:
        TrainingError: The training split has fewer rows than a batch.
    """
    bypass_libraries()
    config = fn_args.custom_config
    settings = TrainerSettings.model_validate(config["trainer"])
    tf_keras.utils.set_random_seed(settings.seed)
    transform_output = tft.TFTransformOutput(fn_args.transform_output)
    train_files, eval_files = _files(fn_args.train_files), _files(fn_args.eval_files)

    recipe = importlib.import_module(config["model_module"])
    model = _compiled_model(recipe, transform_output, config["label"], settings)
    epochs, steps_per_epoch = schedule(settings, inputs.count_rows(train_files))
    model.fit(
        inputs.training_batches(train_files, transform_output, config["label"], settings.batch_size, settings.seed),
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        validation_data=inputs.evaluation_batches(eval_files, transform_output, config["label"]),
        # Said outright, for several steps an execution cannot find the end of the data by themselves.
        validation_steps=math.ceil(inputs.count_rows(eval_files) / inputs.PARSE_ROWS),
        callbacks=[
            tf_keras.callbacks.TerminateOnNaN(),
            tf_keras.callbacks.CSVLogger(f"{fn_args.model_run_dir}/history.csv"),
            *callbacks.ProgressFile.from_environment(epochs),
        ],
        verbose=2,
    )
    options = export.Options(
        serving_outputs=export.serving_outputs_of(recipe, settings.params),
        raw_examples=warm_up.read_rows(config.get("raw_eval_files", [])),
        class_names=config.get("class_names"),
        validation_metrics=card.last_validation_metrics(model.history.history),
        training={"settings": config["trainer"], "epochs": epochs, "steps_per_epoch": steps_per_epoch},
    )
    export.save(model, transform_output, config["label"], fn_args.serving_model_dir, options)


def schedule(settings: TrainerSettings, rows: int) -> tuple[int, int]:
    """Epochs and steps per epoch.

    With `epochs`, an epoch is one pass over `rows` in whole batches. With `train_steps`, the steps are spread evenly
    over as many epochs as they make passes, rounded up to whole epochs.

    Raises:
        TrainingError: There are fewer rows than one batch needs.
    """
    steps_per_pass = rows // settings.batch_size
    if steps_per_pass == 0:
        raise TrainingError(
            f"The training split has {rows} rows, fewer than one batch of {settings.batch_size}.",
            "Set trainer.batch_size to at most the number of rows.",
        )
    if settings.train_steps is None:
        return settings.epochs or 1, steps_per_pass
    epochs = math.ceil(settings.train_steps / steps_per_pass)
    return epochs, math.ceil(settings.train_steps / epochs)


def _compiled_model(
    recipe: types.ModuleType, transform_output: tft.TFTransformOutput, label: str, settings: TrainerSettings
) -> tf_keras.Model:
    model_features = features.from_schema(transform_output.transformed_metadata.schema, label)
    model = recipe.build_model(model_features, settings.params)
    model.compile(**recipe.compile_arguments(settings.params), steps_per_execution=settings.steps_per_execution)
    return model


def _files(patterns: list[str]) -> list[str]:
    return sorted(path for pattern in patterns for path in fileio.glob(pattern))
