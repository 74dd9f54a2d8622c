"""Checkpoints during the training: when, how many, and what they give back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import subclassed_recipe
import tf_keras
from pydantic import ValidationError
from test_fitting import fit
from test_resume import fit as fit_job
from test_resume import new_job
from tiny_artifacts import Tiny

from components.trainer.callback_settings import CallbackSettings
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("checkpoints", "kept"),
    [
        ({"max_to_keep": 2}, ["epoch-0004.keras", "epoch-0005.keras"]),
        ({"period": 2, "save_weights_only": True}, ["epoch-0002.weights.h5", "epoch-0004.weights.h5"]),
        # Executions are of 2 steps, epochs of 4: 5 is reached with step 6, 10 with 10, 15 with 16, 20 with 20.
        (
            {"save_freq": 5, "max_to_keep": None},
            [f"step-{step:07}.keras" for step in (6, 10, 16, 20)],
        ),
    ],
)
def test_when_they_are_made_and_how_many_are_kept(
    checkpoints: dict[str, Any], kept: list[str], tiny: Tiny, tmp_path: Path
) -> None:
    fit(tiny, tmp_path, epochs=5, callbacks={"checkpoints": checkpoints})
    assert names(tmp_path / "run") == kept


@pytest.mark.parametrize("module", ["tiny_recipe", "subclassed_recipe"])
def test_a_whole_model_goes_on_from_where_it_was(module: str, tiny: Tiny, tmp_path: Path) -> None:
    kept = {"checkpoints": {"period": 2}}
    model, _ = fit(tiny, tmp_path, module, epochs=2, callbacks=kept, precision="mixed_bfloat16")
    loaded = tf_keras.models.load_model(tmp_path / "run" / "checkpoints" / "epoch-0002.keras")
    for found, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert int(loaded.optimizer.iterations) == 8
    for found, expected in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_weights_go_into_a_model_of_the_same_kind(tiny: Tiny, tmp_path: Path) -> None:
    kept = {"checkpoints": {"save_weights_only": True}}
    model, _ = fit(tiny, tmp_path, "subclassed_recipe", epochs=3, callbacks=kept)
    last = model.get_weights()
    model.load_weights(tmp_path / "run" / "checkpoints" / "epoch-0001.weights.h5")
    assert not np.array_equal(model.get_weights()[0], last[0])
    model.load_weights(tmp_path / "run" / "checkpoints" / "epoch-0003.weights.h5")
    for found, expected in zip(model.get_weights(), last, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_those_before_an_interruption_are_kept(tiny: Tiny, tmp_path: Path) -> None:
    kept = {"callbacks": {"checkpoints": {"max_to_keep": 5, "save_weights_only": True}}}
    memory = tmp_path / "interrupted"
    with pytest.raises(InterruptedError):
        fit_job(tiny, new_job(tiny, tmp_path, "first", 4, memory, **kept))
    fit_job(tiny, new_job(tiny, tmp_path, "second", 4, memory, **kept))
    # Epochs 1 to 4 were trained by the first one; of six, the last five are kept.
    assert names(tmp_path / "second") == [f"epoch-000{epoch}.weights.h5" for epoch in (2, 3, 4, 5, 6)]


class Unconfigured(subclassed_recipe.Tower):
    """A model that cannot be made again."""

    def get_config(self) -> dict[str, Any]:
        return {"towers": 1}


def test_a_whole_model_needs_its_configuration(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subclassed_recipe, "build_model", lambda features, params: Unconfigured())
    with pytest.raises(TrainingError) as caught:
        fit(tiny, tmp_path, "subclassed_recipe", epochs=1, callbacks={"checkpoints": {}})
    assert caught.value.what.startswith(
        "trainer.callbacks.checkpoints keeps whole models, but Unconfigured cannot be made again from its get_config: "
    )
    assert "towers" in caught.value.what
    assert caught.value.fix is not None
    assert caught.value.fix.endswith("or set trainer.callbacks.checkpoints.save_weights_only to true.")


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ValidationError, match="period counts epochs, save_freq 5 steps; received both"):
        CallbackSettings(checkpoints={"save_freq": 5, "period": 2})
    with pytest.raises(ValidationError, match=r"parameter_server cannot do callbacks\.checkpoints\.save_freq in steps"):
        TrainerSettings(epochs=1, strategy="parameter_server", callbacks={"checkpoints": {"save_freq": 5}})
