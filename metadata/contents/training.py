"""What the Trainer leaves: the history of the training, and the card of the model."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field

from metadata.contents import places, reading
from metadata.contents.reading import ContentError, Record
from metadata.records import ArtifactRecord

VALIDATION = "val_"
LEARNING_RATES = frozenset({"lr", "learning_rate"})
RISING = ("acc", "accuracy", "auc")
"""How names of metrics end that should rise; Keras tells it in the same way where the mode is `auto`."""

Column = list[float | None]


@dataclass(frozen=True)
class History:
    """Metrics epoch by epoch.

    Attributes:
        columns: Values by the name that Keras logs; those of the evaluation split begin with `val_`. None is a value
            that is no finite number. All are of one length.
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
        """The learning rates, where they were logged."""
        return next((self.columns[name] for name in sorted(LEARNING_RATES & self.columns.keys())), None)

    def best(self, monitor: str, mode: str = "auto") -> int | None:
        """The epoch, from 1, in which a metric was best; the first of several. None where it was not logged.

        Args:
            monitor: The metric as Keras logs it.
            mode: `min`, `max`, or `auto`, which tells by the name.
        """
        values = {epoch: value for epoch, value in enumerate(self.columns.get(monitor, []), 1) if value is not None}
        if not values:
            return None
        rises = monitor.endswith(RISING) if mode == "auto" else mode == "max"
        return min(values, key=lambda epoch: -values[epoch] if rises else values[epoch])


class Tensor(Record):
    """An input or output of a signature; see components/trainer/card.py."""

    dtype: str
    shape: list[int | None] | None
    feature: str | None = None
    missing: str | int | None = None

    @property
    def shape_text(self) -> str:
        """The shape; a question mark stands for any size."""
        if self.shape is None:
            return "any"
        return f"[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


class Signature(Record):
    """One way to call the model."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


class Card(Record):
    """What is known about an exported model; see components/trainer/card.py."""

    name: str
    label: str
    created: datetime
    num_parameters: int
    signatures: dict[str, Signature]
    embedding_layer: str | None = None
    class_names: list[str] | None = None
    validation_metrics: dict[str, float | None] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    schema_sha256: str = ""

    @property
    def callbacks(self) -> dict[str, Any]:
        """The settings of what watched the training."""
        settings = self.training.get("settings")
        found = settings.get("callbacks") if isinstance(settings, dict) else None
        return found if isinstance(found, dict) else {}


def history(model_run: ArtifactRecord) -> History:
    """The history of a training.

    Args:
        model_run: The ModelRun.

    Raises:
        ContentError: It is missing or broken.
    """
    path = model_run.file(places.HISTORY_FILE)
    rows = list(csv.reader(reading.text(path).splitlines()))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ContentError(path, "does not hold what it should: expected a heading and as many values in every line")
    try:
        columns = {name: [_finite(row[place]) for row in rows[1:]] for place, name in enumerate(rows[0])}
    except ValueError as error:
        raise ContentError(path, f"does not hold what it should: {error}") from error
    # Counted anew, for each phase of a training may begin at 0.
    columns.pop("epoch", None)
    return History(columns)


def card(model: ArtifactRecord) -> Card:
    """The card of a model.

    Args:
        model: The Model artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return reading.record(model.file(f"{places.SERVING_MODEL_FOLDER}/{places.CARD_FILE}"), Card)


def _finite(text: str) -> float | None:
    value = float(text) if text else math.nan
    return value if math.isfinite(value) else None
