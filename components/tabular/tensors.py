"""Raw columns as dense tensors, as TFT gives them: sparse where the schema makes them optional."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

RawFeature: TypeAlias = tf.Tensor | tf.SparseTensor


def dense(values: RawFeature, default: float | int | str | bytes) -> tf.Tensor:
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
        parts.append(tf.sparse.to_dense(tf.cast(_joined(list(alike.values())), tf.float32), float("nan")))
        places += alike
    dense_places = [place for place in range(len(columns)) if place not in sparse]
    parts += [tf.reshape(tf.cast(columns[place], tf.float32), [-1, 1]) for place in dense_places]
    places += dense_places
    ordered = tf.gather(tf.concat(parts, axis=1), np.argsort(places), axis=1)
    return tf.ensure_shape(ordered, [None, len(columns)])


def _joined(columns: Sequence[tf.SparseTensor]) -> tf.SparseTensor:
    """Columns of one dtype, side by side."""
    # A batch without any value arrives with shape [batch, 0].
    shape = tf.stack([columns[0].dense_shape[0], 1])
    if len(columns) == 1:
        return tf.SparseTensor(columns[0].indices, columns[0].values, shape)
    # The bare operation: tf.sparse.concat looks at each column in Python.
    joined = tf.raw_ops.SparseConcat(
        indices=[column.indices for column in columns],
        values=[column.values for column in columns],
        shapes=[shape] * len(columns),
        concat_dim=1,
    )
    return tf.SparseTensor(*joined)


class RawInputs(UserDict[str, RawFeature]):
    """Raw features by name, as `preprocessing_fn` gets them of a wide table: most numbers are columns of one tensor.

    Args:
        features: The features that are tensors of their own.
        stack: float32 [batch, columns], NaN where missing.
        columns: The features that are columns of `stack`, in its order.
        alone: Makes a feature of one of these columns, if it is asked for by itself after all.
    """

    def __init__(
        self,
        features: Mapping[str, RawFeature],
        stack: tf.Tensor,
        columns: Sequence[str],
        alone: Callable[[str], RawFeature],
    ) -> None:
        self._stack = stack
        self._places = {name: place for place, name in enumerate(columns)}
        self._alone = alone
        self.taken_together: set[str] = set()
        super().__init__(features)

    def numbers(self, names: Sequence[str]) -> tf.Tensor:
        """See `numbers_of`."""
        self.taken_together |= self._places.keys() & set(names)
        if list(names) == list(self._places):
            return self._stack
        others = [name for name in names if name not in self._places]
        places = self._places | {name: len(self._places) + place for place, name in enumerate(others)}
        together = [self._stack, side_by_side([self[name] for name in others])] if others else [self._stack]
        return tf.gather(tf.concat(together, axis=1), [places[name] for name in names], axis=1)

    def __missing__(self, name: str) -> RawFeature:
        if name not in self._places:
            raise KeyError(name)
        self.data[name] = self._alone(name)
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter({**self.data, **dict.fromkeys(self._places)})

    def __len__(self) -> int:
        return len(self.data.keys() | self._places.keys())


def numbers_of(inputs: Mapping[str, RawFeature], names: Sequence[str]) -> tf.Tensor:
    """Returns columns of numbers as float32 [batch, columns], NaN where missing: the quickest way to take many.

    Args:
        inputs: As `preprocessing_fn` gets them.
        names: The columns.
    """
    return inputs.numbers(names) if isinstance(inputs, RawInputs) else side_by_side([inputs[name] for name in names])


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
