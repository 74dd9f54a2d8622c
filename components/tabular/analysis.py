"""What features need to know of all training rows: by TFT's analyzers in the pipeline, or of rows in memory."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform import schema_inference

QUANTILE_ERROR = 0.1
"""By how much of a bucket TFT may miss a boundary."""


class Analysis(Protocol):
    """What is known of all training rows."""

    def quantiles(self, numbers: tf.Tensor, buckets: int) -> tf.Tensor:
        """The boundaries of equally filled buckets, column by column; NaN does not count.

        Args:
            numbers: float32 [batch, columns].
            buckets: Their number.

        Returns:
            float32 [columns, buckets - 1], ascending in each column.
        """

    def ids(self, name: str, words: tf.Tensor, rare: int, min_rows: int, most: int | None) -> tf.Tensor:
        """Numbers words by frequency, all columns in one vocabulary.

        Args:
            name: The transformed feature; its range is set in the transformed schema, where the trainer reads it.
            words: Text [batch, columns]. Empty text is not in the vocabulary.
            rare: How many ids to keep for words that are not in the vocabulary: 1, or one for each column.
            min_rows: Rarer words are not in the vocabulary.
            most: The most words in the vocabulary; None takes all.

        Returns:
            int64 [batch, columns]: below `rare` for words that are not in the vocabulary, then the most frequent word.
        """

    def with_range(self, name: str, ids: tf.Tensor, size: int) -> tf.Tensor:
        """Returns `ids`, int64, whose range 0 to `size` - 1 the trainer can read as that of the feature `name`."""


class InPipeline:
    """TFT's analyzers: each call of `quantiles` or `ids` is one of them, however many columns it has."""

    def quantiles(self, numbers: tf.Tensor, buckets: int) -> tf.Tensor:
        """See `Analysis`."""
        return tft.quantiles(numbers, buckets, epsilon=QUANTILE_ERROR / buckets, reduce_instance_dims=False)

    def ids(self, name: str, words: tf.Tensor, rare: int, min_rows: int, most: int | None) -> tf.Tensor:
        """See `Analysis`."""
        ranks = tft.compute_and_apply_vocabulary(
            words, default_value=-1, top_k=most, frequency_threshold=min_rows, vocab_filename=name
        )
        known = tf.cast(tft.experimental.get_vocabulary_size_by_name(name), tf.int64)
        return _with_range(_with_rare(ranks, rare), known + rare - 1)

    def with_range(self, name: str, ids: tf.Tensor, size: int) -> tf.Tensor:
        """See `Analysis`."""
        return _with_range(tf.identity(ids), tf.constant(size - 1, tf.int64))


class InMemory:
    """The same of eager tensors that hold all rows.

    Attributes:
        sizes: The number of ids, by feature.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def quantiles(self, numbers: tf.Tensor, buckets: int) -> tf.Tensor:
        """See `Analysis`."""
        columns = numbers.numpy()
        known = np.where(np.isnan(columns).all(axis=0), 0.0, columns)
        return tf.constant(np.nanquantile(known, np.arange(1, buckets) / buckets, axis=0).T, tf.float32)

    def ids(self, name: str, words: tf.Tensor, rare: int, min_rows: int, most: int | None) -> tf.Tensor:
        """See `Analysis`."""
        counts = Counter(word for word in words.numpy().ravel() if word)
        known = [word for word, rows in counts.most_common(most) if rows >= min_rows]
        ranks = {word: rank for rank, word in enumerate(known)}
        looked_up = np.array([[ranks.get(word, -1) for word in row] for row in words.numpy()], np.int64)
        return self.with_range(name, _with_rare(tf.constant(looked_up), rare), len(known) + rare)

    def with_range(self, name: str, ids: tf.Tensor, size: int) -> tf.Tensor:
        """See `Analysis`."""
        self.sizes[name] = size
        return ids


def _with_rare(ranks: tf.Tensor, rare: int) -> tf.Tensor:
    return tf.where(ranks < 0, tf.range(rare, dtype=tf.int64), ranks + rare)


def _with_range(ids: tf.Tensor, highest: tf.Tensor) -> tf.Tensor:
    # What tft.apply_buckets and tft.apply_vocabulary do with their results.
    schema_inference.set_tensor_schema_override(ids, tf.constant(0, tf.int64), highest)
    return ids
