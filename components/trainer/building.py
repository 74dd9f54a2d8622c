"""The recipe's model, built and compiled as recipe.yaml says."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer import accumulation, devices, heads, optimization
from components.trainer.features import Feature
from components.trainer.schedule import Plan
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError

SHOWN_LAYERS = 40
"""Layers in the log's table of parameters at most."""


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
    devices.check_outputs(model)
    if settings.optimization.recompute:
        optimization.recompute_blocks(model, settings.optimization.recompute)
    return model


def compile_model(
    model: tf_keras.Model, recipe: types.ModuleType, settings: TrainerSettings, plan: Plan, rows: Sequence[Any]
) -> None:
    """Compiles the model for one `fit`.

    Args:
        model: Compiled anew, with the weights that it has.
        recipe: The recipe's model.py.
        settings: The recipe's `trainer` section.
        plan: What will be fitted.
        rows: Some rows as the model is fitted with them, `(features, label, ...)`.

    Raises:
        TrainingError: The recipe's optimizer or loss does not go together with `settings.optimization`, a loss, a
            metric or a label is for no output, or a name to freeze fits no layer.
    """
    _freeze(model, plan.freeze)
    arguments = recipe.compile_arguments(settings.params)
    heads.check_arguments(model, arguments)
    wanted = settings.optimization
    arguments["optimizer"] = optimization.configured_optimizer(
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
    heads.check_labels(model, rows[1])
    if type(model).train_step is tf_keras.Model.train_step:
        _make_variables(model, rows[1])
    if wanted.gradient_accumulation > 1:
        accumulation.accumulate(model, wanted.gradient_accumulation, rows[0])


def describe_parameters(model: tf_keras.Model) -> Iterator[str]:
    """A table of the layers that have weights, in lines for the log: name, type, the weights' shapes and their number.

    Args:
        model: Built; of more than `SHOWN_LAYERS` layers the rest are only counted.
    """
    trained = sum(weight.shape.num_elements() for weight in model.trainable_weights)
    yield f"Parameters: {model.count_params():,}, of which {trained:,} are trainable"
    rows = [
        (f"  {name} ({type(layer).__name__})", _shapes(layer), f"{layer.count_params():,}")
        for name, layer in _layers_with_weights(model)
    ]
    shown = rows[:SHOWN_LAYERS]
    name_width, shape_width, count_width = (max(map(len, column), default=0) for column in zip(*shown, strict=True))
    for name, shapes, count in shown:
        yield f"{name:<{name_width}}  {shapes:<{shape_width}}  {count:>{count_width}}"
    if len(rows) > len(shown):
        yield f"  … and {len(rows) - len(shown)} more layers"


def _layers_with_weights(model: tf_keras.Model, prefix: str = "") -> Iterator[tuple[str, tf_keras.layers.Layer]]:
    """The layers by name, those of nested models as `model/layer`."""
    for layer in model.layers:
        if isinstance(layer, tf_keras.Model):
            yield from _layers_with_weights(layer, f"{prefix}{layer.name}/")
        elif layer.weights:
            yield f"{prefix}{layer.name}", layer


def _shapes(layer: tf_keras.layers.Layer) -> str:
    shapes = ("x".join(map(str, weight.shape)) or "1" for weight in layer.weights)
    return ", ".join(shapes)


def _make_variables(model: tf_keras.Model, labels: tf.Tensor | Mapping[str, tf.Tensor]) -> None:
    """Makes the variables of optimizer, loss and metrics: a step that makes them when it first runs is traced twice."""
    model.optimizer.build(model.trainable_variables)
    rows = len(tf.nest.flatten(labels)[0])
    outputs = tf.nest.map_structure(lambda output: tf.zeros([rows, *output.shape[1:]], output.dtype), model.output)
    model.compiled_loss.build(outputs)
    # As Keras itself has them in a step: in the structure of the outputs.
    model.compiled_metrics.build(outputs, model.compiled_metrics._conform_to_outputs(outputs, labels))


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
    frozen = optimization.matching_layers("trainer.phases freezes", patterns, names)
    for layer in model.layers:
        layer.trainable = layer.name not in frozen
