"""Labels: classes by name, or amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import tensorflow as tf

from components.tabular.tensors import RawFeature, as_float, as_words

UNKNOWN_CLASS = -1
"""The id of a label that is none of the classes; training refuses it."""


@dataclass(frozen=True)
class Classes:
    """A column that holds one of several classes; of two, the second is what the model gives the probability of.

    Attributes:
        column: The raw column.
        names: As the data have them, numbers as text ("1"), in the order of the ids.
    """

    column: str
    names: Sequence[str]

    def values(self, raw: RawFeature) -> tf.Tensor:
        """Returns the ids of the classes, int64 [batch]; -1 where the label is missing or none of them."""
        words = tf.strings.strip(as_words(raw, ""))
        is_class = words[:, tf.newaxis] == tf.constant(list(self.names))
        known = tf.reduce_any(is_class, axis=1)
        return tf.where(known, tf.argmax(tf.cast(is_class, tf.int32), axis=1), tf.constant(UNKNOWN_CLASS, tf.int64))


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


LabelColumn: TypeAlias = Classes | Amount
