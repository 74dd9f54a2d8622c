"""Labels: classes by name, several of them at once, or amounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy.typing as npt
import tensorflow as tf

from components.tabular.tensors import RawFeature, as_float, as_words, side_by_side

UNKNOWN_CLASS = -1
"""The id of a label that is none of the classes; training refuses it."""


@dataclass(frozen=True)
class Classes:
    """A column that holds one of several classes; of two, the second is what the model gives the probability of.

    Attributes:
        column: The raw column.
        names: As the data have them, numbers as text ("1"), in the order of the ids.
        ignore_case: Whether `adelie` and `ADELIE` are Adelie.
    """

    column: str
    names: Sequence[str]
    ignore_case: bool = False

    def values(self, raw: RawFeature) -> tf.Tensor:
        """Returns the ids of the classes, int64 [batch]; -1 where the label is missing or none of them."""
        words, names = tf.strings.strip(as_words(raw, "")), tf.constant(list(self.names))
        if self.ignore_case:
            words, names = (tf.strings.lower(texts, encoding="utf-8") for texts in (words, names))
        is_class = words[:, tf.newaxis] == names
        known = tf.reduce_any(is_class, axis=1)
        return tf.where(known, tf.argmax(tf.cast(is_class, tf.int32), axis=1), tf.constant(UNKNOWN_CLASS, tf.int64))


@dataclass(frozen=True)
class SeveralOf:
    """A column that holds any number of names, also none; the model gives the probability of each.

    Attributes:
        column: The raw column: lists, or text with a mark between the names.
        names: As the data have them, numbers as text, in the order of the ids.
        separator: The mark between names in text; None if the column holds lists.
    """

    column: str
    names: Sequence[str]
    separator: str | None = None

    def values(self, raw: RawFeature) -> tf.Tensor:
        """Returns 1 for each name that a row has, else 0: float32 [batch, names]. Other names are ignored."""
        if self.separator is not None:
            parts = tf.strings.split(as_words(raw, ""), self.separator)
            words, rows, num_rows = parts.flat_values, parts.value_rowids(), parts.nrows()
        elif isinstance(raw, tf.SparseTensor):
            words, rows, num_rows = as_words(raw.values, ""), raw.indices[:, 0], raw.dense_shape[0]
        else:
            wide = tf.reshape(raw, [tf.shape(raw)[0], -1])
            num_rows = tf.shape(wide, tf.int64)[0]
            words = as_words(tf.reshape(wide, [-1]), "")
            rows = tf.repeat(tf.range(num_rows), tf.shape(wide)[1])
        has_name = tf.strings.strip(words)[:, tf.newaxis] == tf.constant(list(self.names))
        counts = tf.math.unsorted_segment_sum(tf.cast(has_name, tf.float32), rows, num_rows)
        return tf.ensure_shape(tf.minimum(counts, 1.0), [None, len(self.names)])


@dataclass(frozen=True)
class Flags(SeveralOf):
    """Columns of 0 and 1 that are predicted together; the model gives the probability of each.

    Attributes:
        column: The transformed feature, as `label` in recipe.yaml names it; no raw column.
        names: The raw columns.
    """

    def of(self, inputs: Mapping[str, RawFeature]) -> tf.Tensor:
        """Returns the columns side by side, float32 [batch, names]; NaN where missing."""
        return tf.ensure_shape(side_by_side([inputs[name] for name in self.names]), [None, len(self.names)])


@dataclass(frozen=True)
class Amount:
    """A column that holds a number.

    Attributes:
        column: The raw column.
        mean: About the mean over all rows: where the model starts from.
        deviation: About the standard deviation: the model's unit.
    """

    column: str
    mean: float = 0.0
    deviation: float = 1.0

    def values(self, raw: RawFeature) -> tf.Tensor:
        """Returns the numbers, float32 [batch]; NaN where missing."""
        return as_float(raw)

    def standardized(self, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns amounts in the model's unit."""
        return (amounts - self.mean) / self.deviation


LabelColumn: TypeAlias = Classes | SeveralOf | Amount


def label_values(label: LabelColumn, inputs: Mapping[str, RawFeature]) -> tf.Tensor:
    """Returns the values of a label, from the raw columns as `preprocessing_fn` gets them."""
    return label.of(inputs) if isinstance(label, Flags) else label.values(inputs[label.column])
