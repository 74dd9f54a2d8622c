"""Raw features as plain named tensors, for clients that do not want to build tf.Examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

FeatureSpec: TypeAlias = tf.io.FixedLenFeature | tf.io.VarLenFeature | tf.io.SparseFeature | tf.io.RaggedFeature
RawFeature: TypeAlias = tf.Tensor | tf.SparseTensor

MISSING: dict[tf.DType, float | str | int] = {tf.float32: float("nan"), tf.string: "", tf.int64: tf.int64.min}
"""The value that stands for a missing one, by dtype: a plain tensor has no holes."""

RESERVED = "self"
"""The one word that TensorFlow does not take as the name of a signature's input."""


@dataclass(frozen=True)
class RawTensor:
    """A raw feature as a signature takes it.

    Attributes:
        feature: The feature's name in the raw schema.
        name: The tensor's name: the feature's, with whatever a signature cannot have replaced by `_`.
        dtype: `tf.float32`, `tf.int64` or `tf.string`.
        shape: The shape of one row: `()` for one value, `(None,)` for any number of values (padded with `missing`).
        fixed_shape: The shape that the transform graph takes, for a feature that every row has; None for one that may
            be missing, which it takes as a SparseTensor.
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
        """What `tf.io.parse_example` gives for tf.Examples of the same rows: missing values are not there at all."""
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


def from_schema(
    schema: schema_pb2.Schema, feature_spec: Mapping[str, FeatureSpec], features: Iterable[str]
) -> list[RawTensor] | None:
    """The tensors for `features`, in their order; None where one of them is declared as sparse or ragged.

    Args:
        schema: The raw schema; it tells the features with one value from those with several.
        feature_spec: The parsing spec of every raw feature.
        features: Names of the raw features wanted.
    """
    one_value = {feature.name for feature in schema.feature if feature.value_count.max == 1}
    wanted = list(features)
    tensors = []
    for feature, name in zip(wanted, tensor_names(wanted), strict=True):
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
    """Names that a signature's inputs can have, one for each of `names` and the same wherever possible.

    TensorFlow takes letters, digits and `_`, a letter first, and takes upper and lower case for the same.
    """
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        base = plain if plain[:1].isalpha() and plain != RESERVED else f"feature_{plain}"
        unique, number = base, 2
        while unique.lower() in taken:
            unique, number = f"{base}_{number}", number + 1
        taken.add(unique.lower())
        found.append(unique)
    return found


def _sparse(rows: tf.Tensor, present: tf.Tensor) -> tf.SparseTensor:
    """The present values of `rows` [batch, width], moved to the front of their rows."""
    places = tf.where(present)
    counted = tf.cast(present, tf.int64)
    columns = tf.gather_nd(tf.cumsum(counted, axis=1, exclusive=True), places)
    width = tf.maximum(tf.reduce_max(tf.reduce_sum(counted, axis=1)), 0)
    shape: Any = tf.stack([tf.shape(rows, tf.int64)[0], width])
    return tf.SparseTensor(tf.stack([places[:, 0], columns], axis=1), tf.gather_nd(rows, places), shape)
