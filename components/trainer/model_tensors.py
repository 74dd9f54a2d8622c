"""The model's own inputs and outputs, as an export deals with them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from components.errors import TrainingError
from components.trainer.raw_tensors import tensor_names

Tensors: TypeAlias = Mapping[str, tf.Tensor]


@dataclass(frozen=True)
class ModelInput:
    """An input of the model.

    Attributes:
        feature: The transformed feature that it takes.
        spec: Name, dtype and shape, with a batch dimension of any size. The name is the feature's, as far as a
            signature's input can be called so.
    """

    feature: str
    spec: tf.TensorSpec

    def fit(self, values: tf.Tensor) -> tf.Tensor:
        """The transformed feature in the input's dtype and shape, as `fit` feeds it.

        A transformed integer is always int64, where a model of images may take uint8; and Keras takes [batch] for
        [batch, 1].
        """
        values = tf.cast(values, self.spec.dtype)
        if values.shape.rank == self.spec.shape.rank:
            return values
        return tf.reshape(values, [-1, *self.spec.shape[1:]])

    def nothing(self, rows: tf.Tensor) -> tf.Tensor:
        """Something to feed where no output depends on the input."""
        return tf.zeros([rows, *(1 if size is None else size for size in self.spec.shape[1:])], self.spec.dtype)


def inputs_of(model: tf_keras.Model) -> list[ModelInput]:
    """The inputs of a functional model.

    Raises:
        TrainingError: The model does not say what its inputs are.
    """
    try:
        nested = model.input
    except AttributeError as error:
        raise TrainingError(
            f"build_model in the recipe's model.py: received a {type(model).__name__} without inputs, "
            "expected one with an Input for each feature.",
            "Return tf_keras.Model(inputs, outputs), or a subclass of it called so.",
        ) from error
    tensors = dict(nested) if isinstance(nested, Mapping) else dict(zip(model.input_names, model.inputs, strict=True))
    return [
        ModelInput(feature, tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype, name=name))
        for (feature, tensor), name in zip(tensors.items(), tensor_names(tensors), strict=True)
    ]


def fed(inputs: list[ModelInput], transformed: Tensors, rows: tf.Tensor) -> dict[str, tf.Tensor]:
    """What the model's inputs get, by tensor name; see `ModelInput.nothing` for what is not among `transformed`."""
    return {
        given.spec.name: given.fit(transformed[given.feature]) if given.feature in transformed else given.nothing(rows)
        for given in inputs
    }


def outputs_of(model: tf_keras.Model, inputs: Tensors) -> Tensors:
    """The model's outputs for inputs by feature, by the outputs' names."""
    found = model(dict(inputs), training=False)
    if isinstance(found, Mapping):
        return dict(found)
    return dict(zip(model.output_names, tf.nest.flatten(found), strict=True))


def as_served(outputs: Any) -> Any:
    """Floats as float32, whatever precision the model computes in: clients know no bfloat16."""
    return tf.nest.map_structure(
        lambda tensor: tf.cast(tensor, tf.float32) if tensor.dtype.is_floating else tensor, outputs
    )


def check_served(outputs: Any) -> None:
    """Checks what the recipe's `serving_outputs` returned.

    Raises:
        TrainingError: It is no mapping of names to tensors.
    """
    named = isinstance(outputs, Mapping) and all(isinstance(tensor, tf.Tensor) for tensor in outputs.values())
    if not named or not outputs:
        raise TrainingError(
            f"serving_outputs in the recipe's model.py: received {outputs}, expected tensors by name.",
            'Return a dict with a tensor of shape [batch, ...] a name, such as {"probabilities": ...}.',
        )


def embedding_model(model: tf_keras.Model, layer: str) -> Callable[..., tf.Tensor]:
    """The model up to the output of one of its layers.

    Raises:
        TrainingError: The model has no such layer, or uses it several times, or not for one tensor.
    """
    names = [candidate.name for candidate in model.layers]
    if layer not in names:
        nearest = difflib.get_close_matches(layer, names, n=len(names), cutoff=0.0)
        raise TrainingError(
            f"trainer.embedding_layer: received {layer!r}, expected a layer of the model: {', '.join(nearest)}.",
            "Name one of these layers, or none.",
        )
    chosen = model.get_layer(layer)
    if len(chosen.inbound_nodes) != 1 or isinstance(chosen.output, (list, tuple, dict)):
        raise TrainingError(
            f"trainer.embedding_layer: received {layer!r}, expected a layer with one output that the model uses once.",
            "Name the layer after it.",
        )
    return tf_keras.Model(model.input, chosen.output, name="embedding")  # type: ignore[no-any-return]
