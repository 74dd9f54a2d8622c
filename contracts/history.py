"""The training history: metrics epoch by epoch, as Keras's CSVLogger writes them beside the ModelRun."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass

from contracts.content import ContentError, HasFiles, read_text
from contracts.file_names import HISTORY_FILE

VALIDATION = "val_"
LEARNING_RATES = frozenset({"lr", "learning_rate"})
RISING = ("acc", "accuracy", "auc")
"""Endings of the names of metrics that should rise; Keras's mode `auto` goes by the same endings."""

Column = list[float | None]


@dataclass(frozen=True)
class History:
    """Metrics epoch by epoch.

    Attributes:
        columns: Values by the name that Keras logs; names for the evaluation split begin with `val_`. None stands for a
            value that is not finite. All have the same length.
    """

    columns: dict[str, Column]

    @property
    def epochs(self) -> int:
        """How many epochs there were."""
        return len(next(iter(self.columns.values()), []))

    @property
    def metrics(self) -> list[str]:
        """The metrics' names, without `val_`; the loss first."""
        names = {name.removeprefix(VALIDATION) for name in self.columns.keys() - LEARNING_RATES}
        return sorted(names, key=lambda name: (name != "loss", name))

    @property
    def learning_rate(self) -> Column | None:
        """The learning rates, if they were logged."""
        return next((self.columns[name] for name in sorted(LEARNING_RATES & self.columns.keys())), None)

    def best(self, monitor: str, mode: str = "auto") -> int | None:
        """The first epoch, counted from 1, in which a metric was best; None if it was not logged.

        Args:
            monitor: The metric as Keras logs it.
            mode: `min`, `max`, or `auto`, which goes by the name.
        """
        values = {epoch: value for epoch, value in enumerate(self.columns.get(monitor, []), 1) if value is not None}
        if not values:
            return None
        rises = monitor.endswith(RISING) if mode == "auto" else mode == "max"
        return min(values, key=lambda epoch: -values[epoch] if rises else values[epoch])


def read_history(model_run: HasFiles) -> History:
    """Reads the training history.

    Args:
        model_run: The ModelRun.

    Raises:
        ContentError: It is missing or broken.
    """
    path = model_run.file(HISTORY_FILE)
    rows = list(csv.reader(read_text(path).splitlines()))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ContentError(path, "does not hold what it should: expected a heading and as many values in every line")
    try:
        columns = {name: [_finite(row[place]) for row in rows[1:]] for place, name in enumerate(rows[0])}
    except ValueError as error:
        raise ContentError(path, f"does not hold what it should: {error}") from error
    # Epochs are counted afresh, because each phase of training may begin at 0.
    columns.pop("epoch", None)
    return History(columns)


def _finite(text: str) -> float | None:
    value = float(text) if text else math.nan
    return value if math.isfinite(value) else None
