"""Raw columns as dense tensors, as TFT gives them: sparse where the schema makes them optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

RawFeature: TypeAlias = tf.Tensor | tf.SparseTensor


def dense(values: RawFeature, default: float | int | str) -> tf.Tensor:
    """Returns `values` with shape [batch], missing ones replaced by `default`.

    Args:
        values: A sparse tensor of shape [batch, 1], or a dense one of shape [batch] or [batch, 1].
        default: What replaces missing values; of the same type as `values`.
    """
    if isinstance(values, tf.SparseTensor):
        # A batch without any value arrives with shape [batch, 0].
        column = tf.SparseTensor(values.indices, values.values, [values.dense_shape[0], 1])
        values = tf.sparse.to_dense(column, default)
    return tf.reshape(values, [-1])


def as_float(values: RawFeature) -> tf.Tensor:
    """Returns numbers as float32 [batch], NaN where missing: TFT's analyzers ignore NaN."""
    return dense(tf.cast(values, tf.float32), float("nan"))


def side_by_side(columns: Sequence[RawFeature]) -> tf.Tensor:
    """Returns columns of numbers as float32 [batch, columns], NaN where missing.

    A few operations in all, where `as_float` takes several for each column: the cost of 500 columns is their number of
    operations.

    Args:
        columns: Sparse tensors of shape [batch, 1], or dense ones of shape [batch] or [batch, 1].
    """
    sparse = {place: column for place, column in enumerate(columns) if isinstance(column, tf.SparseTensor)}
    parts: list[tf.Tensor] = []
    places: list[int] = []
    for dtype in dict.fromkeys(column.dtype for column in sparse.values()):
        alike = {place: column for place, column in sparse.items() if column.dtype == dtype}
        # A batch without any value arrives with shape [batch, 0].
        shape = tf.stack([next(iter(alike.values())).dense_shape[0], 1])
        shaped = [tf.SparseTensor(column.indices, column.values, shape) for column in alike.values()]
        joined = tf.cast(tf.sparse.concat(1, shaped), tf.float32)
        parts.append(tf.sparse.to_dense(joined, float("nan")))
        places += alike
    dense_places = [place for place in range(len(columns)) if place not in sparse]
    parts += [tf.reshape(tf.cast(columns[place], tf.float32), [-1, 1]) for place in dense_places]
    places += dense_places
    ordered = tf.gather(tf.concat(parts, axis=1), [places.index(place) for place in range(len(columns))], axis=1)
    return tf.ensure_shape(ordered, [None, len(columns)])


def as_words(values: RawFeature, missing: str) -> tf.Tensor:
    """Returns text or numbers as text [batch], `missing` where missing or empty; 1.0 is "1"."""
    if values.dtype != tf.string:
        values = _numbers_as_text(values)
    words = dense(values, "")
    return tf.where(words == "", missing, words)


def _numbers_as_text(values: RawFeature) -> RawFeature:
    if isinstance(values, tf.SparseTensor):
        return tf.SparseTensor(values.indices, _text(values.values), values.dense_shape)
    return _text(values)


def _text(numbers: tf.Tensor) -> tf.Tensor:
    return tf.strings.as_string(numbers, shortest=numbers.dtype.is_floating)
