"""What trees learn from: the columns of `features.transformed`, as numbers with NaN and as codes of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.tabular import features as tabular
from components.tabular.trees import MISSING_CODE, MOST_CATEGORIES
from components.trainer.features import Feature

MOST_WORDS = 200
"""The most frequent words of texts, each of which is a column that says whether a row has it."""

CHUNK = 8_192

FEWEST_ROWS = 2
"""A category of fewer rows shares the code of rare ones."""


@tf_keras.saving.register_keras_serializable("millrace")
class TreeColumns(tf_keras.layers.Layer):
    """The features of a row as two tensors: codes, int32 [batch, categories], and numbers, float32 [batch, numbers].

    A column of categories or hashes has up to 255 codes, the most frequent of its ids in the training rows; the others
    share the last one. An id that was not there in training is missing.

    Args:
        numbers: The features that hold numbers.
        words: The features that hold words of texts, with the number of the most frequent ones that are columns.
        codes: The features that hold categories or hashes, with the code of each of their ids, (ids, ).
        categories: The number of columns that hold them.
        name: The layer's.
    """

    def __init__(
        self,
        numbers: Sequence[str],
        words: Mapping[str, int],
        codes: Mapping[str, npt.NDArray[np.int32]],
        categories: int,
        name: str,
    ) -> None:
        super().__init__(name=name, dtype="float32", trainable=False)
        self._numbers, self._words = list(numbers), dict(words)
        self._codes = {feature: self._constant(f"codes_{feature}", values) for feature, values in codes.items()}
        self.categories = categories

    @classmethod
    def of(cls, features: Sequence[Feature], rows: Mapping[str, npt.NDArray[Any]], name: str) -> TreeColumns:
        """The layer for a model's inputs.

        Args:
            features: The model's inputs.
            rows: The training rows by feature, for the ids that are in them.
            name: The layer's.
        """
        coded = [feature for feature in features if feature.name in (tabular.CATEGORIES, tabular.HASHES)]
        words = {f.name: min(MOST_WORDS, (f.num_categories or 1) - 1) for f in features if f.name == tabular.WORDS}
        return cls(
            [feature.name for feature in features if feature.name == tabular.NUMBERS],
            words,
            {feature.name: codes_of(rows[feature.name], feature.num_categories or 0) for feature in coded},
            sum(int(np.prod(feature.shape)) for feature in coded),
            name,
        )

    def get_config(self) -> dict[str, Any]:
        """Keras's hook: which columns there are, and the sizes of the weights, which are saved with the model."""
        sizes = {name: int(values.shape[0]) for name, values in self._codes.items()}
        counts = {"codes": sizes, "categories": self.categories}
        return {"name": self.name, "numbers": list(self._numbers), "words": dict(self._words), **counts}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TreeColumns:
        """Keras's hook: the layer, before its weights are loaded."""
        blank = {name: np.zeros(size, np.int32) for name, size in config["codes"].items()}
        return cls(**config | {"codes": blank})

    def _constant(self, name: str, values: npt.NDArray[np.int32]) -> tf.Variable:
        initial = tf_keras.initializers.Constant(values)
        return self.add_weight(name, values.shape, "int32", initial, trainable=False)

    def call(self, inputs: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Keras's hook; see the class."""
        rows = tf.shape(next(iter(inputs.values())))[0]
        codes = [tf.gather(table, inputs[name]) for name, table in self._codes.items()]
        numbers = [
            tf.where(inputs[tabular.RANKS] < 0, np.nan, tf.cast(inputs[name], tf.float32)) for name in self._numbers
        ]
        for name, most in self._words.items():
            # Ids are in the order of frequency; 0 is no word.
            has_word = inputs[name][:, :, tf.newaxis] == tf.range(1, most + 1, dtype=inputs[name].dtype)
            numbers.append(tf.reduce_max(tf.cast(has_word, tf.float32), axis=1))
        return (
            tf.concat(codes, axis=1) if codes else tf.zeros([rows, 0], tf.int32),
            tf.concat(numbers, axis=1) if numbers else tf.zeros([rows, 0]),
        )

    def in_chunks(
        self, inputs: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """What `call` returns, of rows in memory."""
        rows = len(next(iter(inputs.values())))
        parts = [
            self({name: column[start : start + CHUNK] for name, column in inputs.items()})
            for start in range(0, rows, CHUNK)
        ]
        codes, numbers = zip(*parts, strict=True)
        return np.concatenate(codes), np.concatenate(numbers)


def codes_of(ids: npt.NDArray[np.int64], num_ids: int) -> npt.NDArray[np.int32]:
    """The code of each id, (num_ids, ): without gaps in each column, the most frequent first.

    Args:
        ids: (rows, columns), no id in two columns.
        num_ids: All there are.
    """
    codes = np.full(num_ids, MISSING_CODE, np.int32)
    for column in ids.T:
        found, counts = np.unique(column, return_counts=True)
        ranked = found[np.argsort(-counts, kind="stable")]
        frequent = int((counts >= FEWEST_ROWS).sum())
        codes[ranked] = np.minimum(np.arange(len(ranked)), min(frequent, MOST_CATEGORIES - 1))
    return codes


def as_table(codes: npt.NDArray[np.int32], numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Both side by side as scikit-learn takes them, categories first; NaN where missing."""
    known = np.where(codes == MISSING_CODE, np.nan, codes.astype(np.float64))
    return np.concatenate([known, numbers.astype(np.float64)], axis=1)
