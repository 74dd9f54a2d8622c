"""The taxi recipe's model: wide & deep (Cheng et al., 2016, arXiv:1606.07792).

The wide part is a logistic regression on every category and number: it memorizes. The deep part embeds each category as
a short vector and learns what goes together: it generalizes. Their logits are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.features import Feature
from contracts.settings import Settings


class Params(Settings):
    """The keys of `trainer.params` in recipe.yaml, with their defaults."""

    # Deliberately small: 10,000 trips are soon memorized, and 3,000 steps are already worse than 1,000.
    hidden_units: tuple[int, ...] = (64, 32)
    embedding_size: int = 2
    dropout: float = 0.1
    learning_rate: float = 0.001


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the uncompiled model.

    Its inputs are the features by name, each of shape [batch]; its output `probability` is the chance of a big tip,
    float32 [batch, 1].

    Args:
        features: Scalar features; those with `num_categories` are embedded, the others are numbers.
        params: See `Params`.
    """
    settings = Params(**params)
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}
    # Either may be missing: a data set of numbers alone has no categories.
    numbers = _stacked_numbers(features, inputs)
    ids, num_ids = _stacked_ids(features, inputs)

    logit = _wide(numbers, ids, num_ids) + _deep(numbers, ids, num_ids, settings)
    # In float32 even under mixed precision: near 0 and 1, half precision cannot tell probabilities apart.
    probability = tf_keras.layers.Activation("sigmoid", dtype="float32", name="probability")(logit)
    return tf_keras.Model(inputs, probability, name="wide_and_deep")


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `model.compile`: optimizer, loss and metrics."""
    return {
        "optimizer": tf_keras.optimizers.Adam(Params(**params).learning_rate),
        "loss": tf_keras.losses.BinaryCrossentropy(),
        "metrics": [tf_keras.metrics.BinaryAccuracy(name="accuracy"), tf_keras.metrics.AUC(name="auc")],
    }


def _stacked_numbers(features: Sequence[Feature], inputs: Mapping[str, tf.Tensor]) -> tf.Tensor | None:
    """Returns the numeric features side by side, float32 [batch, numbers]; None if there are none."""
    numbers = [tf.cast(inputs[f.name], tf.float32) for f in features if f.num_categories is None]
    return tf.stack(numbers, axis=1) if numbers else None


def _stacked_ids(features: Sequence[Feature], inputs: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor | None, int]:
    """Returns all categories side by side, int64 [batch, categories], and their total number of ids; None without any.

    Each feature's ids start where those of the previous feature end, so that one table embeds them all in one lookup:
    at this size, the cost of a step is its number of operations.
    """
    sizes = {f.name: f.num_categories for f in features if f.num_categories is not None}
    if not sizes:
        return None, 0
    offsets = [0, *accumulate(sizes.values())]
    ids = tf.stack([inputs[name] for name in sizes], axis=1) + tf.constant(offsets[:-1], tf.int64)
    return ids, offsets[-1]


def _wide(numbers: tf.Tensor | None, ids: tf.Tensor | None, num_ids: int) -> tf.Tensor:
    """Returns the linear part's logit, [batch, 1]: a weight for each number, a weight for each id, a bias."""
    logits = []
    if ids is not None:
        weights = tf_keras.layers.Embedding(num_ids, 1, embeddings_initializer="zeros", name="wide_categories")(ids)
        logits.append(tf.reduce_sum(weights, axis=1))
    if numbers is not None:
        logits.append(tf_keras.layers.Dense(1, name="wide_numbers")(numbers))
    return sum(logits[1:], logits[0])


def _deep(numbers: tf.Tensor | None, ids: tf.Tensor | None, num_ids: int, settings: Params) -> tf.Tensor:
    """Returns the network's logit, [batch, 1]."""
    parts = [] if numbers is None else [numbers]
    if ids is not None:
        vectors = tf_keras.layers.Embedding(num_ids, settings.embedding_size, name="embeddings")(ids)
        parts.append(tf_keras.layers.Flatten()(vectors))
    hidden = tf_keras.layers.Concatenate(name="deep_input")(parts) if len(parts) > 1 else parts[0]
    for number, units in enumerate(settings.hidden_units, start=1):
        hidden = tf_keras.layers.Dense(units, activation="relu", name=f"hidden_{number}")(hidden)
        hidden = tf_keras.layers.Dropout(settings.dropout, name=f"dropout_{number}")(hidden)
    return tf_keras.layers.Dense(1, use_bias=False, name="deep_logit")(hidden)
