"""Cross-entropy of class ids with label smoothing, which Keras has for one-hot labels only."""

from __future__ import annotations

import tensorflow as tf
import tf_keras


class SmoothedSparseCrossentropy(tf_keras.losses.SparseCategoricalCrossentropy):
    """`CategoricalCrossentropy(label_smoothing=…)` for class ids (Szegedy et al., 2015, arXiv:1512.00567, section 7).

    Args:
        label_smoothing: The part of the probability that is spread evenly over all classes; in [0, 1).
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        super().__init__(name="smoothed_sparse_crossentropy")
        self.label_smoothing = label_smoothing

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """The loss of each row, float32 [batch].

        Args:
            y_true: Class ids, integers [batch] or [batch, 1].
            y_pred: Probabilities, float32 [batch, num_classes].
        """
        one_hot = tf.one_hot(tf.reshape(tf.cast(y_true, tf.int64), [-1]), tf.shape(y_pred)[-1], dtype=y_pred.dtype)
        return tf_keras.losses.categorical_crossentropy(one_hot, y_pred, label_smoothing=self.label_smoothing)
