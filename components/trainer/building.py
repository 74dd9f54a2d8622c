"""The recipe's model, built and compiled as recipe.yaml says."""

from __future__ import annotations

import fnmatch
import types
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from components.errors import TrainingError
from components.trainer import accumulation, optimization, precision, recompute
from components.trainer.features import Feature
from components.trainer.settings import TrainerSettings


@dataclass(frozen=True)
class Plan:
    """One `fit` of the training.

    Attributes:
        initial_epoch: Epochs that were trained before.
        epochs: Epochs in all when it is done.
        steps_per_epoch: Batches an epoch.
        freeze: Names of layers that do not learn; `*` stands for any letters.
        learning_rate: Replaces the recipe's.
    """

    initial_epoch: int
    epochs: int
    steps_per_epoch: int
    freeze: Sequence[str] = ()
    learning_rate: float | None = None

    @property
    def steps(self) -> int:
        """Its training steps in all."""
        return (self.epochs - self.initial_epoch) * self.steps_per_epoch


def build(recipe: types.ModuleType, features: Sequence[Feature], settings: TrainerSettings) -> tf_keras.Model:
    """Returns the recipe's model, not compiled.

    Args:
        recipe: The recipe's model.py.
        features: The model's inputs.
        settings: The recipe's `trainer` section.

    Raises:
        TrainingError: It is no functional model of these features, or an output is in half precision.
    """
    model = recipe.build_model(features, settings.params)
    _check_inputs(model, [feature.name for feature in features])
    precision.check_outputs(model)
    if settings.optimization.recompute:
        recompute.recompute_blocks(model, settings.optimization.recompute)
    return model


def compile_model(
    model: tf_keras.Model, recipe: types.ModuleType, settings: TrainerSettings, plan: Plan, label: tf.TensorSpec
) -> None:
    """Compiles the model for one `fit`.

    Args:
        model: Compiled anew, with the weights that it has.
        recipe: The recipe's model.py.
        settings: The recipe's `trainer` section.
        plan: What will be fitted.
        label: The labels of a batch.

    Raises:
        TrainingError: The recipe's optimizer or loss does not go together with `settings.optimization`, or a name to
            freeze fits no layer.
    """
    _freeze(model, plan.freeze)
    arguments = recipe.compile_arguments(settings.params)
    wanted = settings.optimization
    arguments["optimizer"] = optimization.configured(
        arguments["optimizer"], wanted, settings.batch_size, plan.steps, plan.learning_rate
    )
    model.compile(
        **arguments,
        steps_per_execution=1 if settings.debug else settings.steps_per_execution,
        jit_compile=wanted.jit_compile or None,
        run_eagerly=settings.debug or None,
    )
    # Every replica gives the metrics of all; Keras would add them up in what callbacks see within an epoch.
    model.distribute_reduction_method = "first"
    if type(model).train_step is tf_keras.Model.train_step:
        _make_variables(model, label)
    if wanted.gradient_accumulation > 1:
        accumulation.accumulate(model, wanted.gradient_accumulation)


def _make_variables(model: tf_keras.Model, label: tf.TensorSpec) -> None:
    """Makes the variables of optimizer, loss and metrics: a step that makes them when it first runs is traced twice."""
    model.optimizer.build(model.trainable_variables)
    rows = label.shape[0]
    outputs = tf.nest.map_structure(lambda output: tf.zeros([rows, *output.shape[1:]], output.dtype), model.output)
    model.compiled_loss.build(outputs)
    model.compiled_metrics.build(outputs, tf.zeros(label.shape, label.dtype))


def _check_inputs(model: tf_keras.Model, features: Sequence[str]) -> None:
    received = getattr(model, "input_names", None)
    if received is None:
        raise TrainingError(
            f"build_model returned a {type(model).__name__} without inputs of its own, expected a functional model.",
            "Build it from tf_keras.Input layers, one for each feature: tf_keras.Model(inputs, outputs).",
        )
    unknown = [name for name in received if name not in features]
    if unknown:
        raise TrainingError(
            f"The model has the inputs {', '.join(unknown)}, which are none of the transformed features: "
            f"{', '.join(features)}.",
            "Name the inputs of the model like the features that preprocessing_fn returns.",
        )


def _freeze(model: tf_keras.Model, patterns: Sequence[str]) -> None:
    names = [layer.name for layer in model.layers]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise TrainingError(
                f"trainer.phases freezes {pattern!r}, which fits none of the model's layers: {', '.join(names)}.",
                "Name a layer or a nested model of the model that build_model returns.",
            )
    for layer in model.layers:
        layer.trainable = not any(fnmatch.fnmatch(layer.name, pattern) for pattern in patterns)
