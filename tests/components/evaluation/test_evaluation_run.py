"""The verdict and the configuration of a run of TFMA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts

from components.evaluation import component, tfma_run
from components.evaluation.blessing import Decision
from components.evaluation.settings import EvaluatorSettings


def decision(blessed: bool, better: bool = False) -> Decision:
    outcome: Any = "blessed" if blessed else "refused"
    return Decision(outcome, blessed, "", [], [], [], shown_not_worse=blessed, shown_better=better)


BEFORE = {"model": 7, "baseline_model": 3, "reference_model": 2}


@pytest.mark.parametrize(("blessed", "file"), [(True, "BLESSED"), (False, "NOT_BLESSED")])
@pytest.mark.parametrize(
    ("compared", "better", "reference"), [(1, False, 7), (2, False, 3), (3, False, 2), (2, True, 7), (3, True, 7)]
)
def test_the_verdict_is_noted_as_tfx_s_own_evaluator_does_with_what_later_candidates_are_judged_by(
    artifact: Callable[..., Any], blessed: bool, file: str, compared: int, better: bool, reference: int
) -> None:
    inputs = {name: [artifact(standard_artifacts.Model)] for name in list(BEFORE)[:compared]}
    for name, [model] in inputs.items():
        model.id = BEFORE[name]
    made = artifact(standard_artifacts.ModelBlessing)
    component._bless(inputs, made, decision(blessed, better), rows="a5")
    held = {name: value.int_value or value.string_value for name, value in made.mlmd_artifact.custom_properties.items()}
    noted = {"blessed": int(blessed) or "", "current_model": inputs["model"][0].uri, "current_model_id": 7}
    if compared > 1:
        noted |= {"baseline_model": inputs["baseline_model"][0].uri, "baseline_model_id": 3}
    assert held == noted | {
        "reference_model_id": reference,
        "evaluated_rows": "a5",
        "shown_not_worse": int(blessed) or "",
    }
    assert [path.name for path in Path(made.uri).iterdir()] == [file]


@pytest.mark.parametrize("has_baseline", [False, True])
def test_a_baseline_is_a_second_model_of_the_configuration(has_baseline: bool) -> None:
    settings = EvaluatorSettings.model_validate({"metrics": {"AUC": {"max_loss": 0.1}}})
    config = tfma_run.complete_config(component.eval_config("big", settings), has_baseline)
    assert [spec.is_baseline for spec in config.model_specs] == [False, True][: 1 + has_baseline]
