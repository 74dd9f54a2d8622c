"""A training that was interrupted and goes on is the training that was not."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_artifacts import Tiny
from trained import history

from components.trainer import building, devices, train
from components.trainer.job import Job

EPOCHS = 6
STOP = {"monitor": "val_loss", "patience": 3}
BEST = {"monitor": "val_loss", "mode": "max"}
PLATEAU = {"monitor": "val_loss", "patience": 1, "factor": 0.5}
STREAMED = {"steps_per_execution": 2, "input": {"cache": "none", "shuffle_rows": 50}}
COSINE = {"learning_rate_schedule": {"decay": "cosine", "warmup_steps": 5}}


def new_job(tiny: Tiny, folder: Path, name: str, epoch: int, memory: Path, **settings: Any) -> Job:
    params = {"epoch": epoch, "task": -1, "how": "raise", "memory": str(memory)}
    lengths = {} if "phases" in settings else {"epochs": EPOCHS}
    return tiny.job(folder / name, "resumed_recipe", **{"params": params, **lengths, **settings})


def fit(tiny: Tiny, job: Job) -> tuple[tf_keras.Model, train.Result]:
    """Builds and fits as `train.train` does, without the export."""
    tf_keras.utils.set_random_seed(job.settings.seed)
    recipe = importlib.import_module(job.model_module)
    with devices.precision_policy(job.settings.precision):
        model_features, data = train.open_data(job, tiny.output)
        model = building.build(recipe, model_features, job.settings)
        return model, train.fit(model, recipe, job, data, tf.distribute.get_strategy())


@pytest.mark.parametrize(
    "settings",
    [
        {**STREAMED, "optimization": {"gradient_accumulation": 2}, "callbacks": {"best_checkpoint": BEST}},
        {"callbacks": {"early_stopping": STOP, "reduce_lr_on_plateau": PLATEAU}},
        {"optimization": COSINE, "precision": "mixed_float16", "callbacks": {"best_checkpoint": BEST}},
        {"phases": [{"epochs": 3}, {"epochs": 3, "learning_rate": 0.01}], "callbacks": {"early_stopping": STOP}},
    ],
    ids=["streamed_groups_best_epoch", "early_stopping_and_plateau", "schedule_and_loss_scale", "phases"],
)
def test_a_resumed_training_is_the_uninterrupted_one(settings: dict[str, Any], tiny: Tiny, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.touch()
    whole_job = new_job(tiny, tmp_path, "whole", 4, done, **settings)
    whole_model, whole = fit(tiny, whole_job)
    memory = tmp_path / "interrupted"
    with pytest.raises(InterruptedError):
        fit(tiny, new_job(tiny, tmp_path, "first", 4, memory, **settings))
    # The files of the execution that was interrupted are not those of the next.
    resumed_job = new_job(tiny, tmp_path, "second", 4, memory, **settings)
    resumed_model, resumed = fit(tiny, resumed_job)
    for found, expected in zip(resumed_model.get_weights(), whole_model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert resumed == whole
    assert history(resumed_job) == history(whole_job)
    assert len(history(whole_job)) > 4
