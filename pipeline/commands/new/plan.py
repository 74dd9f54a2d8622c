"""What `millrace new` found out and decided: all that the recipe's files are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.commands.new.baseline import Measured
from pipeline.commands.new.columns import Found, Use
from pipeline.commands.new.task import Task

SMALLEST_BATCH, LARGEST_BATCH = 16, 256
STEPS_PER_EPOCH = 16
"""About how many steps an epoch of few rows has."""

ROWS_IN_ALL = 200_000
"""About how many rows a training sees, each as often as there are epochs."""

IMAGES_IN_ALL = 40_000
"""The same of images: a minute or two on two cores."""

FEWEST_EPOCHS, MOST_EPOCHS = 3, 50
IMAGE_BATCH = 32
MOST_WARMUP_STEPS = 30
ENCODED_WIDTH = 1024
"""About how many numbers encode all numeric columns of a row."""

LARGEST_WEIGHT = 10.0


@dataclass(frozen=True)
class Plan:
    """A recipe to be.

    Attributes:
        name: The recipe's.
        command: What it was made by.
        data: The `data` section, without defaults.
        columns: All columns but the label, in the order of the data.
        kinds: Schema type of every column: `INT`, `FLOAT` or `BYTES`.
        task: What is predicted.
        train_rows: Rows of the training split, with a label.
        eval_rows: The others.
        measured: The baseline's metrics.
        notes: What the user should know, a sentence each.
        horizontal_flip: Whether images may be mirrored.
    """

    name: str
    command: str
    data: dict[str, Any]
    columns: Sequence[Found]
    kinds: dict[str, str]
    task: Task
    train_rows: int
    eval_rows: int
    measured: Sequence[Measured]
    notes: Sequence[str] = field(default=())
    horizontal_flip: bool = False

    @property
    def image(self) -> Found | None:
        """The column of images that is learned from."""
        return next((found for found in self.columns if found.use == "image"), None)

    def named(self, use: Use) -> list[str]:
        """The columns of one use."""
        return [found.name for found in self.columns if found.use == use]

    @property
    def competes(self) -> bool:
        """Whether kinds of model are compared: trees take no images, and learn one label at a time."""
        return self.image is None and not self.task.several

    @property
    def batch_size(self) -> int:
        """Rows a step: few where there are few."""
        if self.image:
            return min(IMAGE_BATCH, self.train_rows)
        size = 2 ** round(np.log2(max(self.train_rows / STEPS_PER_EPOCH, 1)))
        return int(min(np.clip(size, SMALLEST_BATCH, LARGEST_BATCH), self.train_rows))

    @property
    def epochs(self) -> int:
        """Passes over the training rows."""
        rows = IMAGES_IN_ALL if self.image else ROWS_IN_ALL
        return int(np.clip(rows // self.train_rows, FEWEST_EPOCHS, MOST_EPOCHS))

    @property
    def warmup_steps(self) -> int:
        """Steps of training in which the learning rate of a network for images grows."""
        return min(MOST_WARMUP_STEPS, self.epochs * self.train_rows // self.batch_size // 10)

    @property
    def params(self) -> dict[str, Any]:
        """The `trainer.params`."""
        kind = "best" if self.competes else "network"
        params: dict[str, Any] = {"model": kind, "learning_rate": 0.002, "dropout": 0.15, "weight_decay": 0.02}
        if self.image and self.image.size:
            only = all(found.use in ("image", "left out") for found in self.columns)
            params = {
                "model": "network",
                # A classifier right behind the residual network, as in the paper, where there is nothing else.
                **({"members": 1, "hidden_units": []} if only else {}),
                "learning_rate": 0.003,
                "weight_decay": 0.01,
                "max_shift": max(self.image.size[:2]) // 8,
                "horizontal_flip": self.horizontal_flip,
            }
        numbers = len(self.named("number")) + 5 * len(self.named("date"))
        if numbers * 8 > ENCODED_WIDTH:
            params["number_width"] = max(2, ENCODED_WIDTH // numbers)
        if self.task.rare:
            balanced = [sum(self.task.counts) / (len(self.task.counts) * rows) for rows in self.task.counts]
            params["class_weights"] = [float(f"{min(weight**0.5, LARGEST_WEIGHT):.2g}") for weight in balanced]
        return params

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The `evaluator.metrics` with their bars."""
        bars: dict[str, dict[str, Any]] = {}
        for measured in self.measured:
            bound = "lower_bound" if measured.higher_is_better else "upper_bound"
            bars[measured.name] = {bound: measured.bar(self.eval_rows)}
            if not measured.higher_is_better:
                bars[measured.name]["direction"] = "lower_is_better"
        main = self.measured[0]
        bars[main.name]["max_loss"] = float(
            f"{1.96 * main.deviation * (main.rows / max(self.eval_rows, 1)) ** 0.5:.2g}"
        )
        return bars
