"""Settings that do not go together are refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from components.trainer.settings import TrainerSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give exactly one of train_steps, epochs and phases; received none"),
        (
            {"epochs": 1, "phases": [{"epochs": 2}]},
            "give exactly one of train_steps, epochs and phases; received epochs=1, phases=[Phase(epochs=2, "
            "freeze=[], learning_rate=None)]",
        ),
        (
            {"epochs": 1, "strategy": "mirrored", "workers": 2},
            "workers is 2, but strategy mirrored runs in one process; expected one of multi_worker, parameter_server",
        ),
        (
            {"epochs": 1, "strategy": "multi_worker", "replicas": 2},
            "replicas is for strategy mirrored; received strategy multi_worker",
        ),
        (
            {"epochs": 1, "strategy": "multi_worker", "workers": 3, "batch_size": 64},
            "batch_size is the rows of all replicas together, expected a multiple of 3; received 64",
        ),
        (
            {"epochs": 1, "strategy": "mirrored", "replicas": 5, "batch_size": 64},
            "batch_size is the rows of all replicas together, expected a multiple of 5; received 64",
        ),
        (
            {
                "epochs": 1,
                "optimization": {"learning_rate_schedule": {}},
                "callbacks": {"reduce_lr_on_plateau": {}},
            },
            "optimization.learning_rate_schedule and callbacks.reduce_lr_on_plateau both set the learning rate; "
            "keep one of them",
        ),
        (
            {"epochs": 1, "debug": True, "optimization": {"jit_compile": True}},
            "debug runs eagerly, which optimization.jit_compile cannot; keep one of them",
        ),
    ],
)
def test_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TrainerSettings.model_validate(settings)
    assert [error["msg"] for error in caught.value.errors()] == [f"Value error, {message}"]


def test_silence_trains_on_what_the_machine_has() -> None:
    settings = TrainerSettings(epochs=1)
    assert (settings.strategy, settings.precision, settings.workers) == ("auto", "auto", 1)
    assert settings.optimization.gradient_accumulation == 1
    assert settings.callbacks.backup
