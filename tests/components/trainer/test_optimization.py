"""Learning rates, their schedules, and clipping."""

from __future__ import annotations

import math
from typing import Any

import pytest
import tf_keras
from pydantic import ValidationError

from components.trainer.optimization import configured_optimizer
from components.trainer.settings import OptimizationSettings
from contracts.errors import TrainingError

ADAM = tf_keras.optimizers.Adam


def optimizer(
    steps: int = 100, batch_size: int = 128, rate: float | None = None, given: Any = None, **keys: Any
) -> Any:
    settings = OptimizationSettings.model_validate(keys)
    return configured_optimizer(given or ADAM(0.01, beta_1=0.8), settings, batch_size, steps, rate)


def rates(found: Any, *steps: int) -> list[float]:
    schedule = found._learning_rate
    return [float(schedule(step)) for step in steps]


def test_without_settings_the_recipe_s_optimizer_is_left_alone() -> None:
    given = ADAM(0.01)
    assert optimizer(given=given) is given


def test_an_optimizer_may_be_given_by_its_name() -> None:
    found = optimizer(given="sgd", rate=0.5)
    assert (type(found), float(found.learning_rate)) == (tf_keras.optimizers.SGD, 0.5)


def test_other_arguments_stay() -> None:
    found = optimizer(clip_norm=1.5, rate=0.25)
    config = found.get_config()
    assert (config["global_clipnorm"], config["beta_1"], config["learning_rate"]) == (1.5, 0.8, 0.25)


@pytest.mark.parametrize(("rule", "expected"), [("linear", 0.04), ("sqrt", 0.02)])
def test_scaling_with_the_batch(rule: str, expected: float) -> None:
    found = optimizer(batch_size=512, learning_rate_scaling=rule, base_batch_size=128)
    assert float(found.learning_rate) == pytest.approx(expected)
    with_rate = optimizer(batch_size=512, learning_rate_scaling=rule, base_batch_size=128, rate=0.1)
    assert float(with_rate.learning_rate) == pytest.approx(expected * 10)


def test_a_cosine_without_warm_up() -> None:
    found = optimizer(learning_rate_schedule={"final_fraction": 0.1})
    assert rates(found, 0, 50, 100, 200) == pytest.approx([0.01, 0.0055, 0.001, 0.001])


def test_a_warm_up_then_a_cosine_over_the_steps_that_are_left() -> None:
    found = optimizer(steps=120, learning_rate_schedule={"warmup_steps": 20})
    quarter = 0.01 * (1 + math.cos(math.pi / 4)) / 2
    assert rates(found, 0, 10, 20, 45, 120) == pytest.approx([0, 0.005, 0.01, quarter, 0])


def test_a_warm_up_alone() -> None:
    found = optimizer(learning_rate_schedule={"decay": "none", "warmup_steps": 10})
    assert rates(found, 0, 5, 10, 60, 100) == pytest.approx([0, 0.005, 0.01, 0.01, 0.01])


def test_a_warm_up_longer_than_the_training() -> None:
    with pytest.raises(TrainingError) as caught:
        optimizer(steps=100, learning_rate_schedule={"warmup_steps": 100})
    assert str(caught.value) == (
        "trainer.optimization.learning_rate_schedule.warmup_steps is 100, but the training has only 100 steps.\n"
        "Warm up for fewer steps, or train longer."
    )


def test_a_schedule_of_the_recipe_s_own_is_not_overwritten() -> None:
    own = ADAM(tf_keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5))
    assert optimizer(given=own, clip_norm=1.0).get_config()["learning_rate"]["class_name"] == "ExponentialDecay"
    with pytest.raises(TrainingError) as caught:
        optimizer(given=own, learning_rate_schedule={})
    assert str(caught.value) == (
        "compile_arguments in model.py gives the optimizer a schedule (ExponentialDecay), expected a number where "
        "recipe.yaml scales or schedules the learning rate.\n"
        "Give the optimizer a number, or take the settings out of trainer.optimization."
    )


@pytest.mark.parametrize("keys", [{"learning_rate_scaling": "linear"}, {"base_batch_size": 128}])
def test_scaling_needs_a_base(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="learning_rate_scaling and base_batch_size go together; received"):
        OptimizationSettings.model_validate(keys)
