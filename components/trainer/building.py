"""The recipe's model, built and compiled as recipe.yaml says."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer import accumulation, devices, heads, interface, optimization
from components.trainer.features import Feature
from components.trainer.schedule import Plan
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError

SHOWN_LAYERS = 40
"""The most layers in the log's table of parameters."""

FEW_WEIGHTS = 50_000
"""Models with fewer trainable weights are trained in float32 where the precision is `auto`."""


def build(recipe: types.ModuleType, features: Sequence[Feature], settings: TrainerSettings) -> tf_keras.Model:
    """Returns the recipe's model, not compiled.

    Args:
        recipe: The recipe's model.py.
        features: The model's inputs.
        settings: The recipe's `trainer` section.

    Raises:
        TrainingError: It is no model of tf_keras of these features, or an output is in half precision.
    """
    model = recipe.build_model(features, settings.params)
    check_inputs(model, features)
    devices.check_outputs(model)
    if settings.optimization.recompute:
        optimization.recompute_blocks(model, settings.optimization.recompute)
    return model


def build_to_suit(build: Callable[[], tf_keras.Model], settings: TrainerSettings) -> tuple[tf_keras.Model, str]:
    """Builds the model under the global dtype policy or, if `trainer.precision` is `auto` and that suits, in float32.

    Plain TensorFlow code mixes features in float32 with layers' half-precision outputs, and fails. A model with few
    weights gains nothing: its steps are overhead, not arithmetic.

    Args:
        build: Builds it.
        settings: The recipe's `trainer` section.

    Returns:
        The model, and why it is in float32; empty if it is under the global policy as it was.
    """
    policy = tf_keras.mixed_precision.global_policy().name
    if settings.precision != "auto" or policy == "float32":
        return build(), ""
    try:
        model = build()
        num_weights = sum(weight.shape.num_elements() for weight in model.trainable_weights)
        why = f"a model of {num_weights:,} weights gains nothing from it" if num_weights < FEW_WEIGHTS else ""
    # Built again in float32, where an error that has nothing to do with the precision is raised again.
    except Exception as error:
        why = f"the model cannot be built in it: {str(error).strip().splitlines()[0]}"
    if not why:
        return model, ""
    tf_keras.mixed_precision.set_global_policy("float32")
    # As if the first one had never been: layers are named in the order in which they are made.
    tf_keras.backend.reset_uids()
    tf_keras.utils.set_random_seed(settings.seed)
    return build(), f"Precision: float32 instead of {policy}: {why}"


def compile_model(
    model: tf_keras.Model, recipe: types.ModuleType, settings: TrainerSettings, plan: Plan, rows: Sequence[Any]
) -> None:
    """Compiles the model for one `fit`.

    Args:
        model: Keeps its weights.
        recipe: The recipe's model.py.
        settings: The recipe's `trainer` section.
        plan: The phase to be fitted.
        rows: Some rows in the form that `fit` takes, `(features, label, ...)`.

    Raises:
        TrainingError: The recipe's optimizer or loss is incompatible with `settings.optimization`, a loss, a metric or
            a label names no output, or a pattern to freeze matches no layer.
    """
    _freeze(model, plan.freeze)
    arguments = recipe.compile_arguments(settings.params)
    heads.check_arguments(model, arguments)
    optimization_settings = settings.optimization
    arguments["optimizer"] = optimization.configured_optimizer(
        arguments["optimizer"], optimization_settings, settings.batch_size, plan.steps, plan.learning_rate
    )
    model.compile(
        **arguments,
        steps_per_execution=1 if settings.debug else settings.steps_per_execution,
        jit_compile=optimization_settings.jit_compile or None,
        run_eagerly=settings.debug or None,
    )
    # Every replica returns the metrics of all replicas; Keras would add them up for callbacks within an epoch.
    model.distribute_reduction_method = "first"
    heads.check_labels(model, rows[1])
    if type(model).train_step is tf_keras.Model.train_step:
        _make_variables(model, rows[1])
    if optimization_settings.gradient_accumulation > 1:
        accumulation.accumulate(model, optimization_settings.gradient_accumulation, rows[0])


def describe_parameters(model: tf_keras.Model) -> Iterator[str]:
    """A table for the log of the layers that have weights: name, type, the weights' shapes and their number.

    Args:
        model: Built; layers beyond the first `SHOWN_LAYERS` are only counted.
    """
    num_trainable = sum(weight.shape.num_elements() for weight in model.trainable_weights)
    yield f"Parameters: {model.count_params():,}, of which {num_trainable:,} are trainable"
    rows = [
        (f"  {name} ({type(layer).__name__})", _shapes(layer), f"{layer.count_params():,}")
        for name, layer in _layers_with_weights(model)
    ]
    shown_rows = rows[:SHOWN_LAYERS]
    widths = (max(map(len, column), default=0) for column in zip(*shown_rows, strict=True))
    name_width, shape_width, count_width = widths
    for name, shapes, count in shown_rows:
        yield f"{name:<{name_width}}  {shapes:<{shape_width}}  {count:>{count_width}}"
    if len(rows) > len(shown_rows):
        yield f"  … and {len(rows) - len(shown_rows)} more layers"


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
    """Creates the variables of optimizer, loss and metrics; a step that creates them itself is traced twice."""
    model.optimizer.build(model.trainable_variables)
    rows = len(tf.nest.flatten(labels)[0])
    outputs = tf.nest.map_structure(lambda output: tf.zeros([rows, *output.shape[1:]], output.dtype), model.output)
    model.compiled_loss.build(outputs)
    # Keras builds them in the structure of the outputs, too, within a step.
    model.compiled_metrics.build(outputs, model.compiled_metrics._conform_to_outputs(outputs, labels))


def check_inputs(model: Any, features: Sequence[Feature], function: str = "build_model") -> None:
    """Checks that a model is one of tf_keras and of these features; a subclass is called on them, once.

    Args:
        model: What a function of model.py returned.
        features: The transformed features.
        function: That function.

    Raises:
        TrainingError: It is not.
    """
    if not isinstance(model, tf_keras.Model):
        raise TrainingError(
            f"{function} returned a {type(model).__module__}.{type(model).__qualname__}, expected a tf_keras.Model.",
            "Build it with tf_keras, not with Keras 3 (docs/adr/0002-tf-keras.md).",
        )
    interface.connect(model, features, function)
    names = [feature.name for feature in features]
    unknown = [name for name in interface.inputs(model) if name not in names]
    if unknown:
        raise TrainingError(
            f"The model has the inputs {', '.join(unknown)}, which are none of the transformed features: "
            f"{', '.join(names)}.",
            "Name the inputs of the model like the features that preprocessing_fn returns.",
        )


def _freeze(model: tf_keras.Model, patterns: Sequence[str]) -> None:
    names = [layer.name for layer in model.layers]
    frozen = optimization.matching_layers("trainer.phases freezes", patterns, names)
    for layer in model.layers:
        layer.trainable = layer.name not in frozen
