"""What every benchmark of the Trainer is given: a folder, data, child processes, rounds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks import child
from benchmarks.training import data
from pipeline import recipe

BATCH = 128
NOISE_ROWS = 20 * BATCH
FEW_ROWS = 5 * BATCH
LARGE_BATCH = 32
LARGE_ROWS = 10 * LARGE_BATCH
MANY_ROWS = 80 * BATCH
RESNET, RESNET50, WIDE_AND_DEEP = (f"benchmarks.training.{name}" for name in ("resnet", "resnet50", "wide_and_deep"))


@dataclass(frozen=True)
class Bench:
    """One run of the benchmarks.

    Attributes:
        folder: Where everything goes.
        rounds: How often each side is measured.
        console: Shows what is being done.
    """

    folder: Path
    rounds: int
    console: Console

    @functools.cached_property
    def noise(self) -> dict[str, str]:
        """See `data.noise_images`; 20 batches."""
        return self._prepared("images", lambda folder: data.noise_images(folder, NOISE_ROWS))

    @functools.cached_property
    def few(self) -> dict[str, str]:
        """See `data.noise_images`; 5 batches."""
        return self._prepared("few images", lambda folder: data.noise_images(folder, FEW_ROWS))

    @functools.cached_property
    def to_enlarge(self) -> dict[str, str]:
        """See `data.noise_images`; 10 batches of `LARGE_BATCH`, for a network that works on them at 224 pixels."""
        return self._prepared("images to enlarge", lambda folder: data.noise_images(folder, LARGE_ROWS))

    @functools.cached_property
    def many(self) -> dict[str, str]:
        """See `data.noise_images`; 80 batches, for what is done once an epoch weighs too much in short ones."""
        return self._prepared("many images", lambda folder: data.noise_images(folder, MANY_ROWS))

    @functools.cached_property
    def digits(self) -> dict[str, str]:
        """See `data.digits`."""
        return self._prepared("digits", data.digits)

    @functools.cached_property
    def taxi(self) -> dict[str, str]:
        """See `data.taxi_trips`."""
        return self._prepared("taxi trips", data.taxi_trips)

    def call(self, side: str, note: str, arguments: Mapping[str, Any], cores: Collection[int] = ()) -> Any:
        """Calls a function of sides.py or, with its module named, another one in a process of its own.

        Args:
            side: Its name, or `module:function`.
            note: Shown meanwhile.
            arguments: The function's, by name.
            cores: See `child.call`.
        """
        function = side if ":" in side else f"benchmarks.training.sides:{side}"
        self.console.print(note, style="dim", highlight=False)
        return child.call(function, arguments, self.folder / "children", cores)

    def alternately(self, sides: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
        """Calls each side once a round, in turns, every other round in reverse; returns the results by side."""
        results: dict[str, list[Any]] = {name: [] for name in sides}
        for number in range(self.rounds):
            for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
                results[name].append(sides[name]())
        return results

    def _prepared(self, name: str, prepare: Callable[[Path], dict[str, str]]) -> dict[str, str]:
        self.console.print(f"Preparing the {name}", style="dim", highlight=False)
        return prepare(self.folder / name.replace(" ", "-"))


def trainer_settings(name: str, **changes: Any) -> dict[str, Any]:
    """A recipe's `trainer` section, with some settings replaced; those that are None are left out."""
    settings = recipe.load(name).settings.trainer.model_dump(mode="json") | changes
    return {key: value for key, value in settings.items() if value is not None}


def resnet_settings(**changes: Any) -> dict[str, Any]:
    """Settings of a short training on `Bench.noise`."""
    return {"batch_size": BATCH, "epochs": 4, "steps_per_execution": 5, **changes}


def seconds(times: list[list[float]]) -> float:
    """The median wall time of epochs or executions."""
    return median(wall for wall, _ in times)


def ratio(above: list[float], below: list[float]) -> float:
    """The median of the ratios taken round by round."""
    return median(one / other for one, other in zip(above, below, strict=True))
