"""How long is trained."""

from __future__ import annotations

from typing import Any

import pytest

from components.trainer.schedule import Plan, plan_phases
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError


@pytest.mark.parametrize(
    ("settings", "rows", "expected"),
    [
        ({"epochs": 3, "batch_size": 40}, 100, [Plan(0, 3, 2)]),
        ({"epochs": 1, "batch_size": 100}, 100, [Plan(0, 1, 1)]),
        ({"train_steps": 1000, "batch_size": 40}, 10_000, [Plan(0, 4, 250)]),
        ({"train_steps": 1001, "batch_size": 40}, 10_000, [Plan(0, 5, 201)]),
        ({"train_steps": 10, "batch_size": 40}, 10_000, [Plan(0, 1, 10)]),
        ({"train_steps": 7, "batch_size": 40}, 79, [Plan(0, 7, 1)]),
        (
            {"phases": [{"epochs": 2, "freeze": ["base_*"]}, {"epochs": 3, "learning_rate": 0.5}], "batch_size": 40},
            100,
            [Plan(0, 2, 2, ["base_*"]), Plan(2, 5, 2, [], 0.5)],
        ),
    ],
)
def test_the_schedule(settings: dict[str, Any], rows: int, expected: list[Plan]) -> None:
    found = plan_phases(TrainerSettings.model_validate(settings), rows)
    assert found == expected


def test_the_steps_of_a_plan_are_its_own() -> None:
    assert Plan(2, 5, 7).steps == 21


def test_fewer_rows_than_a_batch() -> None:
    with pytest.raises(TrainingError) as caught:
        plan_phases(TrainerSettings(epochs=1, batch_size=40), 39)
    assert str(caught.value) == (
        "The training split has 39 rows, fewer than one batch of 40.\n"
        "Set trainer.batch_size to at most the number of rows."
    )
