"""How the training went: curves, the best epoch, whether it ended early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metadata.contents import training
from metadata.contents.training import VALIDATION, Card, History
from metadata.pages.charts import Line, Lines
from metadata.report.source import Source, Surroundings

MONITOR = "val_loss"
FACTS = ("precision", "steps_per_epoch", "replicas", "strategy")
FEW_EPOCHS = 30
"""Curves of no more epochs have a dot for each: of one epoch there would be nothing to see otherwise."""


@dataclass(frozen=True)
class Training:
    """The training of the run's model.

    Attributes:
        charts: One a metric, with a curve for training and one for validation; the learning rate where it was logged.
        last: Name, training value, validation value of the last epoch and of the best one.
        epochs: Epochs done.
        planned: Epochs asked for; None where the card does not tell.
        monitor: The metric that decides which epoch is best.
        best: That epoch, from 1; None where it was not logged.
        exported: Which epoch's model was exported, in words.
        early: Whether it ended before all epochs were done.
        facts: Name and value of what else the card tells, such as the precision.
    """

    charts: list[Lines]
    last: list[tuple[str, list[float | None]]]
    epochs: int
    planned: int | None
    monitor: str
    best: int | None
    exported: str
    early: bool
    facts: list[tuple[str, Any]]


def read(source: Source, _surroundings: Surroundings) -> Training | None:
    """Reads it; None where the Trainer did not come to its end."""
    history, card = history_of(source), source.card
    if history is None or card is None:
        return None
    chosen, mode, exported = _judged_by(card)
    best = history.best(chosen, mode)
    planned = card.training.get("epochs")
    return Training(
        charts=_charts(history),
        last=[(name, _values(history, name, best)) for name in history.metrics],
        epochs=history.epochs,
        planned=planned if isinstance(planned, int) else None,
        monitor=chosen,
        best=best,
        exported=exported,
        early=isinstance(planned, int) and 0 < history.epochs < planned,
        facts=[(name, value) for name, value in card.training.items() if name in FACTS],
    )


def history_of(source: Source) -> History | None:
    """The history of a run's training; None where the Trainer did not come to its end.

    Raises:
        ContentError: It is missing or broken.
    """
    model_run = source.artifact("Trainer", "model_run")
    return None if model_run is None else training.history(model_run)


def _judged_by(card: Card) -> tuple[str, str, str]:
    """The monitored metric, its mode, and whose epoch's model was exported."""
    checkpoint, stopping = card.callbacks.get("best_checkpoint"), card.callbacks.get("early_stopping")
    watching = checkpoint or stopping
    if not isinstance(watching, dict):
        return MONITOR, "auto", "the last epoch"
    restored = checkpoint or watching.get("restore_best_weights")
    monitor, mode = str(watching.get("monitor", MONITOR)), str(watching.get("mode", "auto"))
    return monitor, mode, "the best epoch" if restored else "the last epoch"


def _charts(history: History) -> list[Lines]:
    few = history.epochs <= FEW_EPOCHS
    charts = [Lines(name, _lines(history, name), x="epoch", y=name, markers=few) for name in history.metrics]
    if history.learning_rate:
        line = Line("learning rate", list(enumerate(history.learning_rate, 1)))
        charts.append(Lines("learning rate", [line], x="epoch", y="learning rate", markers=few))
    return charts


def _lines(history: History, metric: str) -> list[Line]:
    named = (("training", metric, False), ("validation", f"{VALIDATION}{metric}", True))
    return [
        Line(name, list(enumerate(history.columns[column], 1)), dashed)
        for name, column, dashed in named
        if column in history.columns
    ]


def _values(history: History, metric: str, best: int | None) -> list[float | None]:
    """Training and validation in the last epoch, then in the best one."""
    epochs = (history.epochs, best)
    columns = [history.columns.get(name) for name in (metric, f"{VALIDATION}{metric}")]
    return [column[epoch - 1] if column and epoch else None for epoch in epochs for column in columns]
