"""The tensors of a model's signatures: raw features as plain named tensors, and the model's own inputs and outputs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow_metadata.proto.v0 import schema_pb2

from components.trainer import interface
from components.trainer.interface import Tensors
from contracts.errors import TrainingError
from contracts.near_names import near_names

FeatureSpec: TypeAlias = tf.io.FixedLenFeature | tf.io.VarLenFeature | tf.io.SparseFeature | tf.io.RaggedFeature
RawFeature: TypeAlias = tf.Tensor | tf.SparseTensor

MISSING: dict[tf.DType, float | str | int] = {tf.float32: float("nan"), tf.string: "", tf.int64: tf.int64.min}
"""The value that marks a missing one, by dtype, because a plain tensor has no gaps."""

RESERVED = "self"
"""The one word that TensorFlow does not accept as the name of a signature's input."""


@dataclass(frozen=True)
class RawTensor:
    """A raw feature as a signature takes it.

    Attributes:
        feature: The feature's name in the raw schema.
        name: The tensor's name: the feature's, with characters that a signature does not allow replaced by `_`.
        dtype: `tf.float32`, `tf.int64` or `tf.string`.
        shape: The shape of one row: `()` for one value, `(None,)` for any number of values (padded with `missing`).
        fixed_shape: The shape that the transform graph takes, if every row has the feature; None if it may be missing,
            in which case the graph takes a SparseTensor.
    """

    feature: str
    name: str
    dtype: tf.DType
    shape: tuple[int | None, ...]
    fixed_shape: tuple[int, ...] | None

    @property
    def spec(self) -> tf.TensorSpec:
        """The signature's input, with a batch dimension of any size."""
        return tf.TensorSpec([None, *self.shape], self.dtype, name=self.name)

    @property
    def missing(self) -> float | str | int | None:
        """The value that means "missing"; None for a feature that must be given."""
        return MISSING[self.dtype] if self.fixed_shape is None else None

    def to_feature(self, values: tf.Tensor) -> RawFeature:
        """What `tf.io.parse_example` returns for tf.Examples of the same rows, where missing values are absent."""
        if self.fixed_shape is not None:
            return tf.reshape(values, [-1, *self.fixed_shape])
        rows = values if self.shape else tf.expand_dims(values, axis=1)
        present = ~tf.math.is_nan(rows) if self.dtype.is_floating else rows != tf.constant(self.missing, self.dtype)
        return _sparse(rows, present)

    def from_feature(self, feature: RawFeature) -> tf.Tensor:
        """The inverse of `to_feature`."""
        if self.fixed_shape is not None:
            return tf.reshape(feature, [-1, *self.shape])
        if self.shape:
            return tf.sparse.to_dense(feature, self.missing)
        column = tf.SparseTensor(feature.indices, feature.values, [feature.dense_shape[0], 1])
        return tf.reshape(tf.sparse.to_dense(column, self.missing), [-1])


def stack(columns: Sequence[tuple[RawTensor, tf.Tensor]]) -> tf.Tensor:
    """Numbers as float32 [batch, columns], NaN where missing: the stack that a `RawTransform` takes.

    Args:
        columns: Raw features of one value a row, and their tensors.
    """
    # One operation for all columns of a kind, not several for each.
    kinds = [(column.dtype, column.missing is None) for column, _ in columns]
    parts, places = [], []
    for kind in dict.fromkeys(kinds):
        alike = [place for place, other in enumerate(kinds) if other == kind]
        values = tf.stack([columns[place][1] for place in alike], axis=1)
        parts.append(_with_nan(values, columns[alike[0]][0].missing))
        places += alike
    if len(parts) == 1:
        return parts[0]
    return tf.gather(tf.concat(parts, axis=1), np.argsort(places), axis=1)


def _with_nan(values: tf.Tensor, missing: float | str | int | None) -> tf.Tensor:
    numbers = tf.cast(values, tf.float32)
    return numbers if values.dtype.is_floating or missing is None else tf.where(values == missing, np.nan, numbers)


def raw_tensors_from_schema(
    schema: schema_pb2.Schema, feature_spec: Mapping[str, FeatureSpec], features: Iterable[str]
) -> list[RawTensor] | None:
    """The tensors for `features`, in their order; None if one of them is declared as sparse or ragged.

    Args:
        schema: The raw schema, which distinguishes features with one value from those with several.
        feature_spec: The parsing spec of every raw feature.
        features: Names of raw features.
    """
    one_value = {feature.name for feature in schema.feature if feature.value_count.max == 1}
    feature_names = list(features)
    tensors = []
    for feature, name in zip(feature_names, tensor_names(feature_names), strict=True):
        spec = feature_spec[feature]
        if isinstance(spec, tf.io.FixedLenFeature):
            fixed = tuple(spec.shape)
            tensors.append(RawTensor(feature, name, spec.dtype, () if set(fixed) <= {1} else fixed, fixed))
        elif isinstance(spec, tf.io.VarLenFeature):
            shape = () if feature in one_value else (None,)
            tensors.append(RawTensor(feature, name, spec.dtype, shape, None))
        else:
            return None
    return tensors


def tensor_names(names: Iterable[str]) -> list[str]:
    """Valid names for a signature's inputs, one for each of `names` and unchanged wherever possible.

    TensorFlow accepts letters, digits and `_`, with a letter first, and does not distinguish upper and lower case.
    """
    used_names: set[str] = set()
    unique_names = []
    for name in names:
        sanitized = re.sub(r"[^A-Za-z0-9_]", "_", name)
        base = sanitized if sanitized[:1].isalpha() and sanitized != RESERVED else f"feature_{sanitized}"
        unique, number = base, 2
        while unique.lower() in used_names:
            unique, number = f"{base}_{number}", number + 1
        used_names.add(unique.lower())
        unique_names.append(unique)
    return unique_names


def _sparse(rows: tf.Tensor, present: tf.Tensor) -> tf.SparseTensor:
    """The present values of `rows` [batch, width], moved to the front of their rows."""
    positions = tf.where(present)
    counts = tf.cast(present, tf.int64)
    columns = tf.gather_nd(tf.cumsum(counts, axis=1, exclusive=True), positions)
    width = tf.maximum(tf.reduce_max(tf.reduce_sum(counts, axis=1)), 0)
    shape: Any = tf.stack([tf.shape(rows, tf.int64)[0], width])
    return tf.SparseTensor(tf.stack([positions[:, 0], columns], axis=1), tf.gather_nd(rows, positions), shape)


@dataclass(frozen=True)
class ModelInput:
    """An input of the model.

    Attributes:
        feature: The transformed feature that it takes.
        spec: Name, dtype and shape, with a batch dimension of any size. The name is the feature's, if that is valid
            for a signature's input; see `tensor_names`.
    """

    feature: str
    spec: tf.TensorSpec

    def fit(self, values: tf.Tensor) -> tf.Tensor:
        """The transformed feature in the input's dtype and shape, as `fit` feeds it.

        A transformed integer is always int64, whereas a model of images may take uint8; and Keras accepts [batch] for
        [batch, 1].
        """
        values = tf.cast(values, self.spec.dtype)
        if values.shape.rank == self.spec.shape.rank:
            return values
        return tf.reshape(values, [-1, *self.spec.shape[1:]])

    def placeholder(self, rows: tf.Tensor) -> tf.Tensor:
        """Zeros to feed where no output depends on the input."""
        return tf.zeros([rows, *(1 if size is None else size for size in self.spec.shape[1:])], self.spec.dtype)


def model_inputs(model: tf_keras.Model) -> list[ModelInput]:
    """The inputs of a model that is functional or `interface.connect`ed."""
    tensors = interface.inputs(model)
    return [
        ModelInput(feature, tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype, name=name))
        for (feature, tensor), name in zip(tensors.items(), tensor_names(tensors), strict=True)
    ]


def model_feed(inputs: list[ModelInput], transformed: Tensors, rows: tf.Tensor) -> dict[str, tf.Tensor]:
    """The values of the model's inputs by tensor name; a placeholder for each that is not among `transformed`."""
    return {
        model_input.spec.name: model_input.fit(transformed[model_input.feature])
        if model_input.feature in transformed
        else model_input.placeholder(rows)
        for model_input in inputs
    }


def cast_for_serving(outputs: Any) -> Any:
    """Casts floats to float32, whatever precision the model computes in: clients do not support bfloat16."""
    return tf.nest.map_structure(
        lambda tensor: tf.cast(tensor, tf.float32) if tensor.dtype.is_floating else tensor, outputs
    )


def check_serving_outputs(outputs: Any) -> None:
    """Checks what the recipe's `serving_outputs` returned.

    Raises:
        TrainingError: It is not a mapping of names to tensors.
    """
    is_named = isinstance(outputs, Mapping) and all(isinstance(tensor, tf.Tensor) for tensor in outputs.values())
    if not is_named or not outputs:
        raise TrainingError(
            f"serving_outputs in the recipe's model.py: received {outputs}, expected tensors by name.",
            'Return a dict with a tensor of shape [batch, ...] a name, such as {"probabilities": ...}.',
        )


def embedding_model(model: tf_keras.Model, layer: str) -> Callable[..., tf.Tensor]:
    """The model up to the output of one of its layers.

    Raises:
        TrainingError: The model has no such layer or uses it several times, or the layer has several outputs.
    """
    names = [candidate.name for candidate in model.layers]
    if layer not in names:
        nearest = near_names(layer, names, most=len(names), cutoff=0.0)
        raise TrainingError(
            f"trainer.embedding_layer: received {layer!r}, expected a layer of the model: {', '.join(nearest)}.",
            "Name one of these layers, or none.",
        )
    chosen = model.get_layer(layer)
    if not interface.is_functional(model):
        return functools.partial(_output_within, model, chosen)
    if len(chosen.inbound_nodes) != 1 or isinstance(chosen.output, (list, tuple, dict)):
        raise _embedding_error(layer)
    return tf_keras.Model(model.input, chosen.output, name="embedding")  # type: ignore[no-any-return]


def _output_within(model: tf_keras.Model, layer: tf_keras.layers.Layer, features: Tensors, training: bool) -> tf.Tensor:
    """What a layer of a subclassed model returns while the model is called."""
    seen: list[Any] = []
    original = layer.call

    def observed(*arguments: Any, **named: Any) -> Any:
        seen.append(original(*arguments, **named))
        return seen[-1]

    # Keras looks the method up whenever the layer is called.
    layer.call = observed
    try:
        model(dict(features), training=training)
    finally:
        del layer.call
    if len(seen) != 1 or not isinstance(seen[0], tf.Tensor):
        raise _embedding_error(layer.name)
    return seen[0]


def _embedding_error(layer: str) -> TrainingError:
    return TrainingError(
        f"trainer.embedding_layer: received {layer!r}, expected a layer with one output that the model uses once.",
        "Name the layer after it.",
    )
