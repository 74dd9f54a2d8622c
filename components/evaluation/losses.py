"""Cross-entropies and squared errors of rows."""

from __future__ import annotations

import numpy as np

from components.evaluation.kept import Array

EPSILON = 1e-7
"""Keras's fuzz factor: probabilities are kept this far from 0 and 1 before their logarithm is taken."""


def errors(labels: Array, predictions: Array) -> Array:
    """How wrong each prediction is: what rows are ordered by, without knowing yet what kind of task it is.

    Args:
        labels: Class ids or numbers, float64 [n].
        predictions: float [n, k].

    Returns:
        float64 [n]: for one number a row its distance from the label, which puts both squared errors and a score's
        cross-entropies in order; for several the cross-entropy. Infinite where a prediction is not a number.
    """
    if predictions.shape[1] == 1:
        found = np.abs(predictions[:, 0].astype(np.float64) - labels)
    else:
        found = multiclass_cross_entropy(labels, predictions)
    return np.where(np.isnan(found), np.inf, found)


def binary_cross_entropy(labels: Array, scores: Array) -> Array:
    """-log p of the true class, as tf_keras.losses.BinaryCrossentropy, float64 [n]."""
    score = np.clip(scores.astype(np.float64), EPSILON, 1 - EPSILON)
    return np.asarray(-np.where(labels == 1, np.log(score + EPSILON), np.log(1 - score + EPSILON)))


def multiclass_cross_entropy(labels: Array, predictions: Array) -> Array:
    """-log p of the true class, as tf_keras.losses.SparseCategoricalCrossentropy, float64 [n]."""
    chance = probabilities(predictions)
    of_label = chance[np.arange(len(labels)), labels.astype(np.int64)]
    return np.asarray(-np.log(np.clip(of_label, EPSILON, 1 - EPSILON)))


def probabilities(predictions: Array) -> Array:
    """Predictions of several classes as probabilities, float64 [n, k].

    Rows that are none, not all at least 0 with the sum 1, are taken for logits: softmax makes them probabilities.
    """
    values = predictions.astype(np.float64)
    proper = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 0.01)
    if proper.all():
        return values
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return np.where(proper[:, None], values, powers / powers.sum(axis=1, keepdims=True))
