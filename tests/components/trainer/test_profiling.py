"""A profile is of the very steps that were asked for, however many steps an execution has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from components.trainer import profiling
from components.trainer.schedule import Plan
from contracts.errors import TrainingError

STEPS_PER_EPOCH = 24


def fit(folder: Path, steps: tuple[int, int], steps_per_execution: int, **arguments: Any) -> list[int]:
    """Trains three epochs; returns the length of each execution."""
    lengths = []
    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)
    last = [-1]

    def count(batch: int, _logs: Any) -> None:
        lengths.append(batch - last[0])
        last[0] = batch if batch + 1 < STEPS_PER_EPOCH else -1

    rows = tf.data.Dataset.from_tensors((np.ones([2, 3]), np.ones([2, 1]))).repeat()
    model.fit(
        rows,
        **{"epochs": 3, "steps_per_epoch": STEPS_PER_EPOCH, "verbose": 0, **arguments},
        validation_data=rows,
        validation_steps=1,
        callbacks=[
            profiling.Profile(steps, STEPS_PER_EPOCH, str(folder)),
            tf_keras.callbacks.LambdaCallback(on_train_batch_end=count),
        ],
    )
    return lengths


def profiled_steps(folder: Path) -> list[int]:
    """The steps within their epochs, from 0, that the profile has whole."""
    [path] = folder.glob("plugins/profile/*/*.xplane.pb")
    found = []
    for plane in XSpace.FromString(path.read_bytes()).planes:
        names = {key: value.name for key, value in plane.event_metadata.items()}
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        for event in (event for line in plane.lines for event in line.events):
            if names[event.metadata_id] == "train":
                found += [stat.int64_value for stat in event.stats if stats[stat.metadata_id] == "step_num"]
    return sorted(found)


def test_the_steps_in_the_middle_of_an_execution(tmp_path: Path) -> None:
    assert fit(tmp_path, (8, 12), 10) == [7, 1, 1, 1, 1, 1, 10, 2, *[10, 10, 4] * 2]
    assert profiled_steps(tmp_path) == [7, 8, 9, 10, 11]


def test_over_the_end_of_an_epoch_and_with_executions_longer_than_an_epoch(tmp_path: Path) -> None:
    assert fit(tmp_path, (24, 26), 50) == [23, 1, 1, 1, 22, 24]
    assert profiled_steps(tmp_path) == [0, 1, 23]


def test_the_first_and_the_last_step(tmp_path: Path) -> None:
    assert fit(tmp_path / "first", (1, 1), 10) == [1, 10, 10, 3, *[10, 10, 4] * 2]
    assert profiled_steps(tmp_path / "first") == [0]
    assert fit(tmp_path / "last", (72, 72), 10) == [*[10, 10, 4] * 2, 10, 10, 3, 1]
    assert profiled_steps(tmp_path / "last") == [23]


def test_a_training_that_goes_on_after_the_steps_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(tmp_path, (8, 30), 10, initial_epoch=1) == [10, 10, 4] * 2
    assert capsys.readouterr().out == (
        "No profile: the steps 8 to 30 (trainer.callbacks.tensorboard.profile_steps) were not trained in this "
        "execution, which went on after them or ended before them.\n"
    )
    assert list(tmp_path.iterdir()) == []


PHASES = [Plan(0, 2, 15), Plan(2, 5, 15)]


@pytest.mark.parametrize("steps", [(1, 30), (31, 75), (31, 31)])
def test_steps_that_a_phase_has_pass(steps: tuple[int, int]) -> None:
    profiling.check_steps(steps, PHASES)


def test_steps_that_the_training_does_not_have_are_refused() -> None:
    with pytest.raises(TrainingError) as caught:
        profiling.check_steps((20, 31), PHASES[:1])
    assert str(caught.value) == (
        "trainer.callbacks.tensorboard.profile_steps is [20, 31], but the training has the steps 1 to 30.\n"
        "Choose steps that it has, or train longer."
    )
    with pytest.raises(TrainingError) as caught:
        profiling.check_steps((20, 31), PHASES)
    assert str(caught.value) == (
        "trainer.callbacks.tensorboard.profile_steps is [20, 31], but the training has the steps 1 to 30 and 31 to 75."
        "\n"
        "Choose steps of one phase."
    )
