"""Accumulated gradients are those of the whole batch."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import tensorflow as tf
import tf_keras
from small_models import assert_equal, fitted, residual_network

from components.trainer.optimization import accumulate
from contracts.errors import TrainingError


@pytest.fixture(scope="module")
def whole() -> Any:
    """Trained with whole batches."""
    return fitted()


@pytest.mark.parametrize("groups", [2, 3, 17, 40])
def test_groups_of_any_number_equal_the_whole_batch(whole: Any, groups: int) -> None:
    # 17 rows in 2 groups are 9 and 8; the last batch, of 6 rows in 4 groups, would be 2, 2, 2 and none.
    assert_equal(fitted(functools.partial(accumulate, num_groups=groups)), whole, 1e-6)


def test_with_several_steps_an_execution(whole: Any) -> None:
    assert_equal(fitted(functools.partial(accumulate, num_groups=4), steps_per_execution=3), whole, 1e-6)


def test_under_float16_with_its_loss_scaling() -> None:
    expected = fitted(policy="mixed_float16")
    found = fitted(functools.partial(accumulate, num_groups=3), policy="mixed_float16")
    assert isinstance(found[0].optimizer, tf_keras.mixed_precision.LossScaleOptimizer)
    assert_equal(found, expected, 1e-3)


def test_steps_are_traced_and_counted_as_before(whole: Any) -> None:
    model, _ = fitted(functools.partial(accumulate, num_groups=3))
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
        accumulate(model, 2)
    assert str(caught.value) == (
        "trainer.optimization.gradient_accumulation is 2, but OwnStep in model.py has a train_step of its own, which "
        "cannot be cut into groups.\n"
        "Accumulate in that train_step, or set gradient_accumulation to 1."
    )


def test_a_loss_that_is_a_sum_is_refused() -> None:
    model = residual_network()
    model.compile("sgd", tf_keras.losses.SparseCategoricalCrossentropy(reduction="sum", name="total"))
    with pytest.raises(TrainingError, match=r"the loss 'total' has the reduction 'sum', expected a mean"):
        accumulate(model, 2)
