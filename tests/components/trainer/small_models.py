"""A small residual network and its data, trained as a step is trained."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tf_keras

from components.trainer import devices
from components.trainer.accumulation import accumulate

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.random((40, 8, 8, 3)).astype(np.float32)
LABELS = RANDOM.integers(0, 5, 40)
WEIGHTS = RANDOM.random(40).astype(np.float32)


def residual_network(normalized: bool = False, dropout: bool = False) -> tf_keras.Model:
    """Two residual blocks named `block_1` and `block_2`, with a regularizer; always the same first weights."""
    tf_keras.utils.set_random_seed(1)
    layers = tf_keras.layers
    image = tf_keras.Input([8, 8, 3], name="image")
    hidden = layers.Conv2D(4, 3, padding="same", name="stem")(image)
    for number in (1, 2):
        inputs = tf_keras.Input(hidden.shape[1:])
        out = layers.Conv2D(4, 3, padding="same", kernel_regularizer="l2")(inputs)
        if normalized:
            out = layers.BatchNormalization()(out)
        if dropout:
            out = layers.Dropout(0.5)(out)
        block = tf_keras.Model(inputs, layers.Add()([layers.ReLU()(out), inputs]), name=f"block_{number}")
        hidden = block(hidden)
    pooled = layers.GlobalAveragePooling2D()(hidden)
    return tf_keras.Model(image, layers.Dense(5, "softmax", dtype="float32", name="probabilities")(pooled))


def fitted(
    change: Callable[[tf_keras.Model], None] | None = None,
    before_compile: bool = False,
    policy: Any = "float32",
    normalized: bool = False,
    **compile_arguments: Any,
) -> tuple[tf_keras.Model, dict[str, list[float]]]:
    """Trains for two epochs of batches of 17, 17 and 6 weighted rows, and returns the model and its history.

    Args:
        change: Applied to the model after, or `before_compile`, it is compiled.
        before_compile: See `change`.
        policy: The dtype policy.
        normalized: Whether blocks have batch normalization.
        **compile_arguments: Of `model.compile`.
    """
    with devices.precision_policy(policy):
        model = residual_network(normalized)
        if change and before_compile:
            change(model)
        model.compile(
            tf_keras.optimizers.SGD(0.1),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            weighted_metrics=[tf_keras.metrics.SparseCategoricalCrossentropy(name="crossentropy")],
            **compile_arguments,
        )
        if change and not before_compile:
            change(model)
        history = model.fit(
            {"image": IMAGES}, LABELS, batch_size=17, epochs=2, sample_weight=WEIGHTS, shuffle=False, verbose=0
        )
    return model, history.history


def in_groups(number: int) -> Callable[[tf_keras.Model], None]:
    """What makes a compiled model accumulate the gradients of so many groups."""
    return functools.partial(accumulate, num_groups=number, features={"image": IMAGES[:8]})


def assert_equal(found: Any, expected: Any, tolerance: float) -> None:
    """Asserts equal weights and histories of two results of `fitted`."""
    for one, other in zip(found[0].weights, expected[0].weights, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=tolerance, err_msg=one.name)
    assert found[1].keys() == expected[1].keys()
    for name, values in found[1].items():
        np.testing.assert_allclose(values, expected[1][name], atol=10 * tolerance, err_msg=name)
