"""`train(training)` of a recipe's model.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import interrupted_recipe
import numpy as np
import own_training_recipe
import pytest
import tiny_recipe
from tiny_artifacts import Tiny
from trained import history, scores

from components.trainer import own_training
from components.trainer.job import Job
from components.trainer.settings import TrainerSettings
from components.trainer.train import fit, open_data, train
from contracts import model_card
from contracts.errors import TrainingError


def new_job(tiny: Tiny, folder: Path, how: str, module: str = "own_training_recipe", **changes: Any) -> Job:
    params = {"how": how, **changes.pop("params", {})}
    return tiny.job(folder, module, **{"epochs": 2, "params": params, **changes})


def card(job: Job) -> model_card.Card:
    return model_card.read_card(Path(job.serving_model_dir))


def test_the_fit_of_train_is_that_of_a_recipe_without_it(tiny: Tiny, tmp_path: Path) -> None:
    plain = new_job(tiny, tmp_path / "plain", "", module="tiny_recipe")
    own = new_job(tiny, tmp_path / "own", "fitted")
    for job in (plain, own):
        train(job)
    np.testing.assert_array_equal(scores(own, tiny), scores(plain, tiny))
    assert history(own) == history(plain)
    assert card(own).validation_metrics == card(plain).validation_metrics


def test_a_killed_training_goes_on_and_does_not_repeat_its_own_work(tiny: Tiny, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    done = tmp_path / "done"
    done.touch()
    interruption = {"epoch": 3, "task": -1, "how": "shorter", "log": log}
    whole = new_job(tiny, tmp_path / "whole", "shorter", params={**interruption, "memory": str(done)})
    train(whole)
    memory = {**interruption, "memory": str(tmp_path / "memory")}
    killed = new_job(tiny, tmp_path / "first", "shorter", params=memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupted_recipe.os, "kill", _raise)
        with pytest.raises(InterruptedError):
            train(killed)
    resumed = new_job(tiny, tmp_path / "second", "shorter", params=memory)
    train(resumed)
    assert Path(log).read_text() == "worked\n" * 2
    assert history(resumed) == history(whole)
    assert len(history(whole)) == 5
    np.testing.assert_array_equal(scores(resumed, tiny), scores(whole, tiny))
    assert list((tmp_path / "checkpoints").iterdir()) == []


def _raise(*_: object) -> None:
    raise InterruptedError


def test_a_loop_of_the_recipe_s_own_has_its_history_and_metrics(tiny: Tiny, tmp_path: Path) -> None:
    job = new_job(tiny, tmp_path / "run", "tape")
    train(job)
    losses = [row["loss"] for row in history(job)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert card(job).validation_metrics.keys() == {"loss"}
    assert scores(job, tiny).shape == (30, 1)


def test_a_model_made_of_the_rows_themselves_is_exported(tiny: Tiny, tmp_path: Path) -> None:
    job = new_job(tiny, tmp_path / "run", "from_arrays")
    train(job)
    share = np.mean([row["tips"] > 4.0 for row in tiny_recipe.TRAIN])
    np.testing.assert_allclose(scores(job, tiny), np.full((30, 1), share), rtol=1e-6)
    assert card(job).validation_metrics == {}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("twice", "train in model.py calls training.fit twice, expected once"),
        ("nothing", "train returned a builtins.NoneType, expected a tf_keras.Model."),
    ],
)
def test_mistakes_in_train_are_named(how: str, message: str, tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=re.escape(message)):
        train(new_job(tiny, tmp_path / "run", how))


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"workers": 2}, "trainer.workers 2"),
        ({"strategy": "parameter_server"}, "trainer.strategy parameter_server"),
        ({"replicas": 2}, "trainer.replicas 2"),
    ],
)
def test_several_devices_are_refused(settings: dict[str, Any], received: str) -> None:
    asked = TrainerSettings.model_validate({"batch_size": 30, "epochs": 1, **settings})
    with pytest.raises(TrainingError, match=f"trains on one device in one process; received {received}"):
        own_training.on_one_device(asked)


def test_what_the_machine_has_is_not_asked_for() -> None:
    assert own_training.on_one_device(TrainerSettings(epochs=1)).strategy == "one_device"


@pytest.mark.parametrize("cache", ["memory", "none"])
def test_some_rows_are_chosen_by_chance_and_alike(cache: str, tiny: Tiny, tmp_path: Path) -> None:
    job = new_job(tiny, tmp_path / "run", "fitted", input={"cache": cache})
    features, data = open_data(job, tiny.output)
    splits = {"train": data.train, "eval": data.eval}
    training = own_training.Training(own_training_recipe, job, features, splits, fit)
    inputs, label, _ = training.arrays("train", most=50)
    again, _, _ = training.arrays("train", most=50)
    everything, _, _ = training.arrays("train")
    np.testing.assert_array_equal(inputs["id"], again["id"])
    assert len(set(inputs["id"].tolist())) == len(label) == 50
    assert sorted(everything["id"].tolist()) == list(range(120))
