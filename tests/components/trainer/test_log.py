"""What a training writes into the node's log before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tf_keras
from tiny_artifacts import Tiny

from components.trainer import building, schedule, train
from components.trainer.inputs import Layout, Split
from components.trainer.settings import TrainerSettings


def split(rows: int, kept: bool = False) -> Split:
    return Split([], Layout({}, [], "label"), rows, {} if kept else None)


def described(rows: int, replicas: int = 1, kept: bool = False, **given: Any) -> list[str]:
    settings = TrainerSettings.model_validate(given)
    plans = schedule.plan_phases(settings, rows)
    return list(schedule.describe_batches(settings, plans, split(rows, kept), split(4966), replicas))


def test_the_arithmetic_of_steps() -> None:
    assert described(10_036, kept=True, train_steps=1000, batch_size=40) == [
        "Rows: 10,036 to train on, kept in memory; 4,966 to validate with",
        "Batch: 40 rows; 250 batches are one pass, which leaves out 36 rows",
        "Length: epochs 1 to 4, 250 steps each, 1,000 steps in all",
    ]


def test_the_arithmetic_of_replicas_groups_and_phases() -> None:
    phases = [{"epochs": 2, "freeze": ["base_*", "stem"]}, {"epochs": 3, "learning_rate": 0.5}]
    groups = {"gradient_accumulation": 3}
    assert described(100_000, 2, phases=phases, batch_size=2048, optimization=groups) == [
        "Rows: 100,000 to train on, streamed from disk; 4,966 to validate with",
        "Batch: 2,048 rows, 1,024 for each of 2 replicas, in groups of 342 whose gradients are added up; "
        "48 batches are one pass, which leaves out 1,696 rows",
        "Phase 1: epochs 1 to 2, 48 steps each, 96 steps in all; frozen: base_*, stem",
        "Phase 2: epochs 3 to 5, 48 steps each, 144 steps in all",
    ]


def model(widths: Sequence[int]) -> tf_keras.Model:
    """A model of dense layers behind a nested one with moving averages."""
    normalized = tf_keras.Sequential([tf_keras.layers.BatchNormalization(name="norm")], name="stem")
    first = tf_keras.Input([3], name="x")
    last = normalized(first)
    for number, width in enumerate(widths):
        last = tf_keras.layers.Dense(width, name=f"dense_{number}")(last)
    return tf_keras.Model(first, last)


def test_the_table_of_parameters() -> None:
    assert list(building.describe_parameters(model([1000, 1]))) == [
        "Parameters: 5,013, of which 5,007 are trainable",
        "  stem/norm (BatchNormalization)  3, 3, 3, 3       12",
        "  dense_0 (Dense)                 3x1000, 1000  4,000",
        "  dense_1 (Dense)                 1000x1, 1     1,001",
    ]


def test_a_deep_model_s_table_is_cut() -> None:
    table = list(building.describe_parameters(model([1] * 100)))
    assert len(table) == building.SHOWN_LAYERS + 2
    assert table[-1] == f"  … and {101 - building.SHOWN_LAYERS} more layers"


def test_both_are_in_the_log_before_the_first_epoch(
    tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train.train(tiny.job(tmp_path / "run", epochs=2, steps_per_execution=2))
    printed = capsys.readouterr().out
    start, _, _ = printed.partition("Epoch 1/2")
    assert start.splitlines() == [
        "Training in float32",
        "Rows: 120 to train on, kept in memory; 30 to validate with",
        "Batch: 30 rows; 4 batches are one pass, which leaves out 0 rows",
        "Length: epochs 1 to 2, 4 steps each, 8 steps in all",
        "Parameters: 4, of which 4 are trainable",
        "  score (Dense)  3x1, 1  4",
    ]
