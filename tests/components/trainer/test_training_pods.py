"""The real processes of a training, started as pods by a stand-in of the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kubernetes_standin import KubernetesStandin
from tiny_artifacts import Tiny
from trained import history, scores

from components.trainer import cluster
from components.trainer.job import Job
from components.trainer.processes import Surroundings
from pipeline.plan import environment
from pipeline.schedule.kubeflow import training_api
from pipeline.schedule.kubeflow.training_job import TrainingJob


def new_job(tiny: Tiny, folder: Path) -> Job:
    return tiny.job(folder, epochs=2, batch_size=26, steps_per_execution=2, workers=2)


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingJob]:
    """A launcher whose cluster is the stand-in."""
    monkeypatch.setattr(training_api, "POLL_SECONDS", 0.2)
    settings = environment.load("kubeflow").kubeflow
    assert settings is not None
    standin = KubernetesStandin(tmp_path).start()
    yield TrainingJob("tiny", "tiny-1", settings, standin.core)
    standin.stop()
    assert standin.requests
    assert standin.jobs == {}


def test_pods_train_the_model_that_local_processes_train(tiny: Tiny, pods: TrainingJob, tmp_path: Path) -> None:
    here, there = new_job(tiny, tmp_path / "here"), new_job(tiny, tmp_path / "there")
    progress = tmp_path / "Trainer.progress.json"
    cluster.train(here, Surroundings(str(progress)))
    progress.unlink()
    cluster.train(there, Surroundings(str(progress), pods))
    np.testing.assert_allclose(scores(there, tiny), scores(here, tiny), rtol=0, atol=1e-6)
    assert len(history(there)) == 2
    for found, expected in zip(history(there), history(here), strict=True):
        assert found == pytest.approx(expected, abs=1e-6)
    assert json.loads(progress.read_text())["epoch"] == 2
    assert json.loads(progress.read_text())["note"] == "float32, 2 workers"
    assert not list(tmp_path.glob("Trainer.processes-*"))
