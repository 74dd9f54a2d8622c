"""What a model takes and gives, by name: of a functional model, and of a subclass with a `call` of its own.

A functional model says so itself. A subclass only does after it was called: `connect` calls it once on symbolic
features, which also creates its weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from components.trainer.features import Feature
from contracts.errors import TrainingError

Tensors: TypeAlias = Mapping[str, tf.Tensor]


def is_functional(model: tf_keras.Model) -> bool:
    """Whether the model was made from tf_keras.Input layers, and not as a subclass with a `call` of its own."""
    return bool(model.inputs)


def connect(model: tf_keras.Model, features: Sequence[Feature], function: str = "build_model") -> None:
    """Calls a subclassed model on all features by name, once; does nothing to a model that knows its inputs.

    Args:
        model: Not compiled, its strategy in scope.
        features: The transformed features.
        function: The function of model.py that returned it, for messages.

    Raises:
        TrainingError: The model's `call` fails.
    """
    if is_functional(model) or model._inbound_nodes:
        return
    try:
        model({feature.name: _input(feature) for feature in features})
    except Exception as error:
        shapes = ", ".join(f"{f.name} {f.dtype.name} {[None, *f.shape]}" for f in features)
        raise TrainingError(
            f"{function} returned a {type(model).__name__} whose call fails for the features {shapes}:\n{_told(error)}",
            "Its call(inputs) is given a dict of these features by name. Mend it, or build the model from "
            "tf_keras.Input layers.",
        ) from error


def inputs(model: tf_keras.Model) -> dict[str, tf.Tensor]:
    """The model's symbolic inputs by feature."""
    nested = model.input
    return dict(nested) if isinstance(nested, Mapping) else dict(zip(model.input_names, model.inputs, strict=True))


def outputs(model: tf_keras.Model) -> dict[str, tf.Tensor]:
    """The model's symbolic outputs by name; see `named_outputs`."""
    return named_outputs(model, model.output)


def called(model: tf_keras.Model, features: Tensors) -> dict[str, tf.Tensor]:
    """The model's outputs by name for values of its inputs by feature, as in inference."""
    return named_outputs(model, model(dict(features), training=False))


def named_outputs(model: tf_keras.Model, values: Any) -> dict[str, tf.Tensor]:
    """What a model returned, by name.

    These are the keys of a dict; else the names of a functional model's last layers, or those that Keras gives the
    outputs of a subclassed one: `output_1`, `output_2`.
    """
    if isinstance(values, Mapping):
        return dict(values)
    flat = tf.nest.flatten(values)
    names = model.output_names if is_functional(model) else [f"output_{n}" for n in range(1, len(flat) + 1)]
    return dict(zip(names, flat, strict=True))


def _input(feature: Feature) -> tf.Tensor:
    return tf_keras.Input(shape=feature.shape, name=feature.name, dtype=feature.dtype)


def _told(error: Exception) -> str:
    """Keras's message without the values of the arguments."""
    return str(error).strip().partition("\n\nCall arguments received")[0].strip() or type(error).__name__
