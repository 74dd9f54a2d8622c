"""Accumulated gradients are those of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from small_models import IMAGES, LABELS, assert_equal, fitted, in_groups, residual_network

from contracts.errors import TrainingError


@pytest.fixture(scope="module")
def whole() -> Any:
    """Trained with whole batches."""
    return fitted()


@pytest.mark.parametrize("groups", [2, 3, 17, 40])
def test_groups_of_any_number_equal_the_whole_batch(whole: Any, groups: int) -> None:
    # 17 rows in 2 groups are 9 and 8; the last batch, of 6 rows in 4 groups, would be 2, 2, 2 and none.
    assert_equal(fitted(in_groups(groups)), whole, 1e-6)


def test_with_several_steps_an_execution(whole: Any) -> None:
    assert_equal(fitted(in_groups(4), steps_per_execution=3), whole, 1e-6)


def test_under_float16_with_its_loss_scaling() -> None:
    expected = fitted(policy="mixed_float16")
    found = fitted(in_groups(3), policy="mixed_float16")
    assert isinstance(found[0].optimizer, tf_keras.mixed_precision.LossScaleOptimizer)
    assert_equal(found, expected, 1e-3)


def test_steps_are_traced_and_counted_as_before(whole: Any) -> None:
    model, _ = fitted(in_groups(3))
    traced = [fit.train_function.experimental_get_tracing_count() for fit in (model, whole[0])]
    assert traced[0] == traced[1]
    assert int(model.optimizer.iterations) == 6


class OwnStep(tf_keras.Model):
    """A model that trains in its own way."""

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        return dict(super().train_step(data))


def test_a_train_step_of_the_recipe_is_refused() -> None:
    plain = residual_network()
    model = OwnStep(plain.inputs, plain.outputs)
    model.compile("sgd", "mse")
    with pytest.raises(TrainingError) as caught:
        in_groups(2)(model)
    assert str(caught.value) == (
        "trainer.optimization.gradient_accumulation is 2, but OwnStep in model.py has a train_step of its own, which "
        "cannot be cut into groups.\n"
        "Accumulate in that train_step, or set gradient_accumulation to 1."
    )


def test_a_loss_that_is_a_sum_is_refused() -> None:
    model = residual_network()
    model.compile("sgd", tf_keras.losses.SparseCategoricalCrossentropy(reduction="sum", name="total"))
    with pytest.raises(TrainingError, match=r"the loss 'total' has the reduction 'sum', expected a mean"):
        in_groups(2)(model)


class Penalty(tf_keras.layers.Layer):
    """Adds a loss made from its inputs."""

    def __init__(self, loss: Any, name: str = "penalty", in_training_alone: bool = False) -> None:
        super().__init__(name=name)
        self.loss, self.in_training_alone = loss, in_training_alone

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training or not self.in_training_alone:
            self.add_loss(self.loss(inputs))
        return inputs


def penalized(*penalties: Any, groups: int = 1) -> tf_keras.Model:
    """Trained one step on 17 rows, with what layers add to the loss."""
    tf_keras.utils.set_random_seed(1)
    image = tf_keras.Input([8, 8, 3], name="image")
    hidden = tf_keras.layers.Dense(4, activity_regularizer="l2")(tf_keras.layers.Flatten()(image))
    for penalty in penalties:
        hidden = penalty(hidden)
    outputs = tf_keras.layers.Dense(5, "softmax", kernel_regularizer="l2")(hidden)
    model = tf_keras.Model(image, outputs)
    model.compile(tf_keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    if groups > 1:
        in_groups(groups)(model)
    model.fit({"image": IMAGES[:17]}, LABELS[:17], batch_size=17, shuffle=False, verbose=0)
    return model


def mean_of_squares(inputs: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(inputs**2)


def noisy_mean(inputs: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean((inputs + tf.random.normal(tf.shape(inputs))) ** 2)


def test_what_is_added_as_a_mean_gives_the_update_of_the_whole_batch() -> None:
    whole, grouped = (penalized(Penalty(mean_of_squares), groups=groups) for groups in (1, 4))
    for one, other in zip(grouped.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_mean_of_what_is_drawn_at_random_passes() -> None:
    penalized(Penalty(noisy_mean), groups=4)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: tf.reduce_sum(x**2),
        lambda x: tf.cast(tf.shape(x)[0], tf.float32),
        lambda x: tf.math.reduce_variance(x),
        lambda x: tf.reduce_sum(noisy_mean(x) * tf.ones(tf.shape(x)[:1])),
    ],
    ids=["sum", "rows", "variance", "noisy_sum"],
)
def test_what_is_added_as_no_mean_over_the_rows_is_refused(loss: Any) -> None:
    with pytest.raises(TrainingError, match=r"the loss that the layer 'other' adds is not a mean over the rows: it "):
        penalized(Penalty(mean_of_squares), Penalty(loss, name="other"), groups=2)


def test_the_message_about_an_added_sum_says_how_to_mend_it() -> None:
    with pytest.raises(TrainingError) as caught:
        penalized(Penalty(lambda x: tf.cast(tf.shape(x)[0], tf.float32)), groups=4)
    assert str(caught.value) == (
        "trainer.optimization.gradient_accumulation is 4, but the loss that the layer 'penalty' adds is not a mean "
        "over the rows: it is 8 for 8 rows together, and 1 on average for each of them alone.\n"
        "Add a mean (tf.reduce_mean over the rows), or set gradient_accumulation to 1."
    )


def test_what_is_added_in_training_alone_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"the layer 'penalty' adds a loss only in training, so it cannot be "):
        penalized(Penalty(mean_of_squares, in_training_alone=True), groups=2)


def test_what_cannot_be_told_is_said(caplog: pytest.LogCaptureFixture) -> None:
    penalized(Penalty(lambda x: tf.reduce_sum(x) * 0.0), groups=2)
    assert "The layer 'penalty' adds a loss that is 0 for the first rows" in caplog.text
