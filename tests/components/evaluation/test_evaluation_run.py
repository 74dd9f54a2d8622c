"""The verdict and the configuration of a run of TFMA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts

from components.evaluation import component, tfma_run
from components.evaluation.settings import EvaluatorSettings


@pytest.mark.parametrize(("blessed", "file"), [(True, "BLESSED"), (False, "NOT_BLESSED")])
@pytest.mark.parametrize("compared", [True, False])
def test_the_verdict_is_noted_as_tfx_s_own_evaluator_does(
    artifact: Callable[..., Any], blessed: bool, file: str, compared: bool
) -> None:
    model, baseline, blessing = (
        artifact(kind)
        for kind in (standard_artifacts.Model, standard_artifacts.Model, standard_artifacts.ModelBlessing)
    )
    model.id, baseline.id = 7, 3
    inputs = {"model": [model], "baseline_model": [baseline] if compared else []}
    component._bless(inputs, blessing, blessed)
    held = {
        name: value.int_value or value.string_value for name, value in blessing.mlmd_artifact.custom_properties.items()
    }
    against = {"baseline_model": baseline.uri, "baseline_model_id": 3} if compared else {}
    assert held == {"blessed": int(blessed) or "", "current_model": model.uri, "current_model_id": 7} | against
    assert [path.name for path in Path(blessing.uri).iterdir()] == [file]


@pytest.mark.parametrize(
    ("bar", "has_baseline", "expected"),
    [
        ({"lower_bound": 0.5}, False, True),
        ({"max_loss": 0.1}, True, True),
        ({"max_loss": 0.1}, False, False),  # The bar is against a baseline alone.
    ],
)
def test_whether_a_model_can_be_refused(bar: dict[str, float], has_baseline: bool, expected: bool) -> None:
    settings = EvaluatorSettings.model_validate({"metrics": {"AUC": bar}})
    config = tfma_run.complete_config(component.eval_config("big", settings), has_baseline)
    assert tfma_run.has_bars(config) is expected
    assert [spec.is_baseline for spec in config.model_specs] == [False, True][: 1 + has_baseline]
