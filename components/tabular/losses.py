"""How an ensemble learns and is measured: each member by its own loss, all together by their mean."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from components.tabular.labels import Amount, LabelColumn, SeveralOf


def member_mean(logits: tf.Tensor, label: LabelColumn, class_weights: Sequence[float] = ()) -> tf.Tensor:
    """What the members predict together: amounts, or probabilities as if all classes had counted the same.

    Args:
        logits: float32 [batch, members, units].
        label: What is predicted.
        class_weights: How much the rows of each class counted in training; empty: all the same.

    Returns:
        float32 [batch, units].
    """
    mean = tf.reduce_mean(logits, axis=1)
    if isinstance(label, Amount):
        return label.mean + label.deviation * mean
    if isinstance(label, SeveralOf):
        return tf.sigmoid(mean)
    if len(label.names) > 2:
        return tf.nn.softmax(mean - tf.math.log(tf.constant(class_weights)) if class_weights else mean)
    return tf.sigmoid(mean - tf.math.log(class_weights[1] / class_weights[0]) if class_weights else mean)


class MembersLoss(tf_keras.losses.Loss):
    """The mean over the members of each one's loss: squared error in deviations, or cross-entropy.

    Args:
        label: What is learned.
        class_weights: How much the rows of each class count; empty: all the same.
    """

    def __init__(self, label: LabelColumn, class_weights: Sequence[float] = ()) -> None:
        super().__init__(name="members_loss")
        self.label = label
        self.class_weights = tuple(class_weights)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """The loss of each row, float32 [batch].

        Args:
            y_true: Ids of classes, or amounts, [batch] or [batch, 1]; of several names, [batch, units].
            y_pred: Logits, float32 [batch, members, units].
        """
        if isinstance(self.label, SeveralOf):
            wanted = tf.broadcast_to(tf.cast(y_true, tf.float32)[:, tf.newaxis, :], tf.shape(y_pred))
            losses = tf.nn.sigmoid_cross_entropy_with_logits(wanted, y_pred)
            return tf.reduce_mean(tf.reduce_mean(losses, axis=1), axis=1)
        labels = tf.reshape(y_true, [-1, 1])
        if isinstance(self.label, Amount):
            wanted = (tf.cast(labels, tf.float32) - self.label.mean) / self.label.deviation
            return tf.reduce_mean(tf.square(y_pred[:, :, 0] - wanted), axis=1)
        ids = tf.tile(tf.cast(labels, tf.int64), [1, y_pred.shape[1]])
        if len(self.label.names) > 2:
            by_member = tf.nn.sparse_softmax_cross_entropy_with_logits(ids, y_pred)
        else:
            by_member = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(ids, tf.float32), y_pred[:, :, 0])
        losses = tf.reduce_mean(by_member, axis=1)
        return losses * tf.gather(tf.constant(self.class_weights), ids[:, 0]) if self.class_weights else losses


class MeanOfMembers(tf_keras.metrics.Metric):
    """A metric of what the members predict together.

    Args:
        label: What is predicted.
        metric: Takes labels, [batch, 1] or of several names [batch, units], and what `member_mean` returns.
        name: Its name in the history.
    """

    def __init__(self, label: LabelColumn, metric: tf_keras.metrics.Metric, name: str) -> None:
        super().__init__(name=name)
        self.label = label
        self.metric = metric

    def update_state(self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | None = None) -> None:
        """Keras's hook."""
        labels = y_true if isinstance(self.label, SeveralOf) else tf.reshape(y_true, [-1, 1])
        self.metric.update_state(labels, member_mean(y_pred, self.label), sample_weight)

    def result(self) -> tf.Tensor:
        """Keras's hook."""
        return self.metric.result()

    def reset_state(self) -> None:
        """Keras's hook."""
        self.metric.reset_state()
