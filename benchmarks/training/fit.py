"""The Trainer's fit against a bare `model.fit` from arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.report import Figure
from benchmarks.training.bench import (
    RESNET,
    WIDE_AND_DEEP,
    Bench,
    ratio,
    resnet_settings,
    seconds,
    trainer_settings,
)

LEAST = 0.95
TAXI_EPOCHS = 6


def measure(bench: Bench) -> list[Figure]:
    """Epochs after the first, validation apart, checkpoints and all other callbacks included.

    Without augmentation, which the bare fit has not either.
    """
    settings = resnet_settings(epochs=4, params={"max_shift": 0})
    resnet = {"module": RESNET, "data": bench.many, "settings": settings}
    taxi_settings = trainer_settings("taxi", train_steps=None, epochs=TAXI_EPOCHS)
    taxi = {"module": WIDE_AND_DEEP, "data": bench.taxi, "settings": taxi_settings}
    return [
        Figure("fit: ours / bare, images/s, ResNet-20", _compare(bench, resnet), at_least=LEAST),
        Figure("fit: ours / bare, rows/s, taxi model", _compare(bench, taxi)),
    ]


def _compare(bench: Bench, training: Mapping[str, Any]) -> float:
    rounds = bench.alternately(
        {
            "ours": lambda: seconds(bench.call("our_fit", "fit: ours", training)["epochs"]),
            "bare": lambda: seconds(bench.call("bare_fit", "fit: bare", training)),
        }
    )
    return ratio(rounds["bare"], rounds["ours"])
