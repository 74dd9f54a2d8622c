"""Recomputed blocks learn what they would learn otherwise."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from small_models import IMAGES, LABELS, assert_equal, fitted, in_groups, residual_network

from components.trainer.optimization import recompute_blocks, undo_recompute
from contracts.errors import TrainingError

BLOCKS = functools.partial(recompute_blocks, patterns=["block_*"])


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_equal_weights_and_equal_moving_averages(policy: str) -> None:
    expected = fitted(policy=policy, normalized=True)
    assert_equal(fitted(BLOCKS, before_compile=True, policy=policy, normalized=True), expected, 1e-7)


def test_together_with_accumulation() -> None:
    both = fitted(lambda model: (recompute_blocks(model, ["block_2"]), in_groups(3)(model)))  # type: ignore[arg-type]
    assert_equal(both, fitted(), 1e-6)


def activations(recompute: bool) -> int:
    """How many convolutions a training step runs forward: those of recomputed blocks twice."""
    model = residual_network(normalized=True)
    if recompute:
        BLOCKS(model)

    @tf.function
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            probabilities = model({"image": tf.constant(IMAGES)}, training=True)
            loss = tf.reduce_mean(tf_keras.losses.sparse_categorical_crossentropy(LABELS, probabilities))
        return list(tape.gradient(loss, model.trainable_variables))

    graph = gradients.get_concrete_function().graph
    return sum(operation.type == "Conv2D" for operation in graph.get_operations())


def test_blocks_are_computed_twice_and_other_layers_once() -> None:
    assert activations(recompute=False) == 3
    assert activations(recompute=True) == 3 + 2


def test_prediction_is_unchanged() -> None:
    plain, recomputed = residual_network(normalized=True), residual_network(normalized=True)
    BLOCKS(recomputed)
    np.testing.assert_array_equal(plain({"image": IMAGES}), recomputed({"image": IMAGES}))


def test_undone_a_block_is_computed_once_again() -> None:
    model = residual_network()
    BLOCKS(model)
    recomputed = tf.function(lambda images: model({"image": images})).get_concrete_function(IMAGES)
    undo_recompute(model)
    plain = tf.function(lambda images: model({"image": images})).get_concrete_function(IMAGES)
    found = [{operation.type for operation in traced.graph.get_operations()} for traced in (recomputed, plain)]
    assert found[0] - found[1] == {"IdentityN"}
    np.testing.assert_array_equal(recomputed(tf.constant(IMAGES)), plain(tf.constant(IMAGES)))


def test_undoing_leaves_operations_on_tensors_alone() -> None:
    inputs = tf_keras.Input([2])
    model = tf_keras.Model(inputs, tf.stack([inputs, 2 * inputs], axis=1))
    undo_recompute(model)
    assert model(tf.constant([[1.0, 3.0]])).numpy().tolist() == [[[1.0, 3.0], [2.0, 6.0]]]


def test_a_name_that_fits_nothing() -> None:
    tf_keras.backend.clear_session()
    with pytest.raises(TrainingError) as caught:
        recompute_blocks(residual_network(), ["block_1", "stage_*"])
    assert str(caught.value) == (
        "trainer.optimization.recompute names 'stage_*', which fits none of the model's layers: stem, block_1, "
        "block_2, global_average_pooling2d, probabilities.\n"
        "Name a layer or a nested model of the model that build_model returns."
    )


def test_a_block_that_draws_random_numbers() -> None:
    tf_keras.backend.clear_session()
    with pytest.raises(TrainingError) as caught:
        recompute_blocks(residual_network(dropout=True), ["block_2"])
    assert str(caught.value) == (
        "trainer.optimization.recompute names 'block_2', whose layer 'dropout_1' (Dropout) draws random numbers; "
        "recomputed, they would be others.\n"
        "Move that layer out of the block, or do not recompute the block."
    )
