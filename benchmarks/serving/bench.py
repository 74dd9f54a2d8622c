"""What every benchmark of the server is given: a folder, models, rounds, clients."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks import child

ROW = [round(0.1 * number - 0.7123, 4) for number in range(16)]
BODY = json.dumps({"instances": [ROW]})
PREDICT = "/v1/models/model:predict"
CLIENTS = 4
SECONDS = 3.0


@dataclass(frozen=True)
class Served:
    """A model to serve.

    Attributes:
        base_path: Holds version 1.
        input_name: The name of its input.
        keras: The same as a Keras model.
    """

    base_path: Path
    input_name: str
    keras: Path


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
    def small(self) -> Served:
        """16-64-64-1: a tenth of a millisecond."""
        return self._model("small", [64, 64])

    @functools.cached_property
    def wide(self) -> Served:
        """16-1536-1536-1: 2.4 million parameters."""
        return self._model("wide", [1536, 1536])

    @functools.cached_property
    def heavy(self) -> Served:
        """Four layers of 2,048: 12.6 million parameters, more than a millisecond."""
        return self._model("heavy", [2048] * 4)

    def call(self, function: str, **arguments: Any) -> Any:
        """Calls `module:function` of this package in a process of its own."""
        return child.call(f"benchmarks.serving.{function}", arguments, self.folder / "children")

    def rest(self, port: int, clients: int = CLIENTS, path: str = PREDICT, **others: Any) -> dict[str, Any]:
        """Asks for the prediction of one row over REST; see `load.rest`."""
        given = {"seconds": SECONDS} | others
        return dict(self.call("load:rest", port=port, path=path, body=BODY, clients=clients, **given))

    def signatures(self, model: Served) -> float:
        """See `models.signature_rate`."""
        path = str(model.base_path / "1")
        return float(self.call("models:signature_rate", path=path, name=model.input_name, row=ROW, seconds=SECONDS))

    def repeat(self, note: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Measures as often as there are rounds; returns the median of each number."""
        rounds = []
        for number in range(self.rounds):
            self.console.print(f"{note}, round {number + 1}", style="dim", highlight=False)
            rounds.append(measure())
        return {key: median(entry[key] for entry in rounds) for key in rounds[0]}

    def log(self, name: str) -> Path:
        """Where a server's output goes."""
        return self.folder / f"{name}-{time.monotonic_ns()}.log"

    def _model(self, name: str, widths: list[int]) -> Served:
        self.console.print(f"Writing the {name} model", style="dim", highlight=False)
        base_path, keras = self.folder / name, self.folder / f"{name}.keras"
        base_path.mkdir()
        written = self.call("models:write", path=str(base_path / "1"), widths=widths, keras_path=str(keras))
        return Served(base_path, written, keras)
