"""Training in several processes: the model of one device, errors and ends, and the way on after them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_artifacts import Tiny
from trained import history, scores

from components.trainer import cluster
from components.trainer.job import Job
from components.trainer.processes import Surroundings
from components.trainer.train import train
from contracts.errors import TrainingError

# Each of two replicas has 13 rows of a batch, which three groups do not divide evenly.
SETTINGS = {"batch_size": 26, "steps_per_execution": 2, "precision": "float32"}
THREE_GROUPS = {"gradient_accumulation": 3}


@pytest.fixture(scope="module")
def new_job(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Job]:
    """Makes jobs with folders of their own: `new_job(epochs=1, workers=2)`."""
    folder, numbers = tmp_path_factory.mktemp("cluster"), count()

    def make(model_module: str = "tiny_recipe", **settings: Any) -> Job:
        return tiny.job(folder / f"run{next(numbers)}", model_module, **{**SETTINGS, **settings})

    return make


@pytest.fixture(scope="module")
def one_device(new_job: Callable[..., Job]) -> Job:
    """A training in this process, without accumulation."""
    job = new_job(epochs=2)
    assert not cluster.is_needed(job.settings)
    train(job)
    return job


@pytest.mark.parametrize(
    "settings", [{"strategy": "mirrored", "replicas": 2}, {"workers": 2}], ids=["mirrored", "multi_worker"]
)
def test_replicas_with_accumulation_train_the_model_of_one_device_without(
    settings: dict[str, Any], one_device: Job, new_job: Callable[..., Job], tiny: Tiny
) -> None:
    job = new_job(epochs=2, optimization=THREE_GROUPS, **settings)
    assert cluster.is_needed(job.settings)
    cluster.train(job, Surroundings())
    np.testing.assert_allclose(scores(job, tiny), scores(one_device, tiny), rtol=1e-5)
    assert [row["epoch"] for row in history(job)] == [0, 1]
    for found, expected in zip(history(job), history(one_device), strict=True):
        assert found == pytest.approx(expected, rel=1e-5)


def test_parameter_servers_train_and_the_coordinator_exports(new_job: Callable[..., Job], tiny: Tiny) -> None:
    job = new_job(epochs=3, strategy="parameter_server", workers=2, optimization=THREE_GROUPS)
    cluster.train(job, Surroundings())
    losses = [row["val_loss"] for row in history(job)]
    assert losses == sorted(losses, reverse=True)
    assert scores(job, tiny).shape == (30, 1)


def test_a_killed_worker_ends_the_training_and_the_next_goes_on(new_job: Callable[..., Job], tmp_path: Path) -> None:
    params = {"epoch": 3, "task": 1, "how": "kill", "memory": str(tmp_path / "done")}
    job = new_job("interrupted_recipe", epochs=6, workers=2, params=params)
    with pytest.raises(TrainingError) as caught:
        cluster.train(job, Surroundings())
    message = str(caught.value)
    assert message.startswith("worker-1 of the training was ended by SIGKILL; its last lines:\n")
    assert "\nabout to die\n" in message
    assert not Path(job.serving_model_dir).exists()
    again = new_job("interrupted_recipe", epochs=6, workers=2, params=params)
    cluster.train(again, Surroundings())
    assert [row["epoch"] for row in history(again)] == list(range(6))


@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_one_device_goes_on_after_its_last_whole_epoch(
    steps_per_execution: int, new_job: Callable[..., Job], tmp_path: Path
) -> None:
    params = {"epoch": 3, "task": -1, "how": "raise", "memory": str(tmp_path / "done")}
    job = new_job("interrupted_recipe", epochs=5, steps_per_execution=steps_per_execution, params=params)
    with pytest.raises(InterruptedError):
        train(job)
    assert [row["epoch"] for row in history(job)] == [0, 1, 2]
    train(job)
    assert [row["epoch"] for row in history(job)] == [0, 1, 2, 3, 4]
