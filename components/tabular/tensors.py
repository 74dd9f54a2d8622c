"""Raw columns as dense tensors, as TFT gives them: sparse where the schema makes them optional."""

from __future__ import annotations

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
