"""Metrics that tf_keras does not have."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras


class SparseF1Score(tf_keras.metrics.F1Score):
    """F1 of labels given as class ids, counted over all batches, replicas and sample weights.

    `tf_keras.metrics.F1Score` needs one-hot labels. This one encodes the ids itself. For an output of one probability
    ([batch, 1]) the ids are 0 and 1, and `threshold` defaults to 0.5; for an output of several classes
    ([batch, classes]) the predicted class defaults to the most probable one.

    Args:
        num_classes: The size of the model's output: 1, or the number of classes.
        average: `micro`, `macro`, `weighted`, or None for one F1 per class.
        threshold: The probability above which a class is predicted.
        name: The metric's name.
        dtype: The dtype of the result.
    """

    def __init__(
        self,
        num_classes: int,
        average: str | None = "macro",
        threshold: float | None = None,
        name: str = "f1_score",
        dtype: Any = None,
    ) -> None:
        default_threshold = 0.5 if threshold is None and num_classes == 1 else threshold
        super().__init__(average=average, threshold=default_threshold, name=name, dtype=dtype)
        self._num_classes = num_classes
        # Not at the first update, as Keras would, because no variable can be created within a replica's step.
        self.build([None, num_classes], [None, num_classes])

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Counts a batch.

        Args:
            y_true: Class ids, integer [batch] or [batch, 1].
            y_pred: Probabilities, [batch, num_classes].
            sample_weight: [batch] or [batch, 1], or None.
        """
        ids = tf.reshape(tf.convert_to_tensor(y_true), [-1])
        wide = self._num_classes > 1
        one_hot = tf.one_hot(tf.cast(ids, tf.int32), self._num_classes) if wide else tf.cast(ids, tf.float32)[:, None]
        weights = None if sample_weight is None else tf.reshape(tf.convert_to_tensor(sample_weight), [-1])
        super().update_state(one_hot, y_pred, weights)

    def get_config(self) -> dict[str, Any]:
        """Keras's hook."""
        config = super().get_config()
        config.pop("beta", None)
        return {**config, "num_classes": self._num_classes}
