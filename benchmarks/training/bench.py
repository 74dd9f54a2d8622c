"""What every benchmark of the Trainer uses: a folder, data, child processes, rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import millrace
from benchmarks.command import Bench
from pipeline.plan import recipe

BATCH = 128
LARGE_BATCH = 32
FEW_ROWS, NOISE_ROWS, MANY_ROWS = 5 * BATCH, 20 * BATCH, 80 * BATCH
LARGE_ROWS = 10 * LARGE_BATCH
RESNET, WIDE_AND_DEEP = "benchmarks.training.resnet", "benchmarks.training.wide_and_deep"

Data = dict[str, str]
"""The paths of transformed data: `train` and `eval`, folders of TFRecords, and `graph`, the transform graph."""

FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
CLASSES = 10
EVAL_ROWS = 128
CHANNELS_FIRST = (3, 32, 32)


def prepare_noise_images(folder: Path, rows: int) -> Data:
    """Transformed images of 32x32 pixels and 3 channels, `rows` of them for training: noise around a class's color.

    They are ingested from CIFAR-10's binary format. How fast a network trains does not depend on what the images show.
    """
    batches = folder / "cifar-10-batches-bin"
    batches.mkdir(parents=True)
    random = np.random.default_rng(1)
    Path(batches, "batches.meta.txt").write_text("\n".join(map(str, range(CLASSES))) + "\n", encoding="utf-8")
    for name in FILES:
        count = EVAL_ROWS if name == FILES[-1] else rows // (len(FILES) - 1)
        labels = random.integers(0, CLASSES, (count, 1), np.uint8)
        pixels = random.integers(0, 128, (count, np.prod(CHANNELS_FIRST)), np.uint8) + labels * 12
        Path(batches, f"{name}.bin").write_bytes(np.hstack([labels, pixels.astype(np.uint8)]).tobytes())
    return _transformed(
        folder,
        "cifar10",
        f"data.path={batches}",
        "data.splits={train: data_batch_*, eval: test_batch}",
        "transform.params={height: 32, width: 32, channels: 3}",
    )


def prepare_digits(folder: Path) -> Data:
    """scikit-learn's digits, split and transformed by the cifar10 recipe; see `prepare_noise_images`."""
    return _transformed(folder, "cifar10")


def prepare_taxi_trips(folder: Path) -> Data:
    """The taxi recipe's rows, transformed; see `prepare_noise_images`."""
    return _transformed(folder, "taxi")


def _transformed(folder: Path, recipe: str, *overrides: str) -> Data:
    runs = folder / recipe
    millrace.run(recipe, millrace.write_environment(runs), folder, *overrides, recipe=recipe, last_node="Transform")
    examples = millrace.output(runs, recipe, "Transform", "transformed_examples").uri
    graph = millrace.output(runs, recipe, "Transform", "transform_graph").uri
    return {"train": f"{examples}/Split-train", "eval": f"{examples}/Split-eval", "graph": graph}


@dataclass(frozen=True)
class TrainingBench(Bench):
    """One run of the benchmarks; data are prepared on first use.

    Attributes:
        prepared: Name -> data.
    """

    prepared: dict[str, Data] = field(default_factory=dict)

    def images(self, rows: int) -> Data:
        """See `prepare_noise_images`."""
        return self._prepare(f"{rows} images", lambda folder: prepare_noise_images(folder, rows))

    def digits(self) -> Data:
        """See `prepare_digits`."""
        return self._prepare("digits", prepare_digits)

    def taxi(self) -> Data:
        """See `prepare_taxi_trips`."""
        return self._prepare("taxi trips", prepare_taxi_trips)

    def side(self, side: str, note: str, arguments: Mapping[str, Any], cores: Collection[int] = ()) -> Any:
        """Calls a function of sides.py in a process of its own.

        Args:
            side: The function's name.
            note: Shown while it runs.
            arguments: The function's arguments, by name.
            cores: The processor cores that the process may use; empty for all.
        """
        self.say(note)
        return self.call(f"benchmarks.training.sides:{side}", arguments, cores)

    def alternately(self, sides: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
        """Calls each side once a round, in reverse order every other round; returns the results by side."""
        results: dict[str, list[Any]] = {name: [] for name in sides}
        for number in range(self.rounds):
            for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
                results[name].append(sides[name]())
        return results

    def _prepare(self, name: str, prepare: Callable[[Path], Data]) -> Data:
        if name not in self.prepared:
            self.say(f"Preparing the {name}")
            self.prepared[name] = prepare(self.folder / name.replace(" ", "-"))
        return self.prepared[name]


def trainer_settings(name: str, **changes: Any) -> dict[str, Any]:
    """A recipe's `trainer` section with some settings replaced; those that are None are left out."""
    settings = recipe.load(name).settings.trainer.model_dump(mode="json") | changes
    return {key: value for key, value in settings.items() if value is not None}


def resnet_settings(**changes: Any) -> dict[str, Any]:
    """The settings of a short training on `prepare_noise_images`."""
    return {"batch_size": BATCH, "epochs": 4, "steps_per_execution": 5, **changes}


def seconds(times: list[list[float]]) -> float:
    """The median wall time of epochs or executions."""
    return median(wall for wall, _ in times)


def ratio(above: list[float], below: list[float]) -> float:
    """The median of the ratios within each round."""
    return median(numerator / denominator for numerator, denominator in zip(above, below, strict=True))
