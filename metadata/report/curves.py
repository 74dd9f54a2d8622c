"""The training curves of two runs over each other."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents.reading import ContentError
from metadata.contents.training import VALIDATION, History
from metadata.pages.charts import Line, Lines
from metadata.report.sections import training
from metadata.report.source import Source

LEARNING_RATE = "learning rate"


@dataclass(frozen=True)
class Curves:
    """The trainings of two runs.

    Attributes:
        charts: One a metric that both have, and one of the learning rates; each run has its colour.
        why_not: Why there are none, as a sentence; else empty.
    """

    charts: list[Lines]
    why_not: str = ""


def read(before: Source, after: Source) -> Curves | None:
    """Reads them; None where not both runs trained a model."""
    made = [source.artifact("Trainer", "model_run") for source in (before, after)]
    if made[0] is None or made[1] is None:
        return None
    if made[0].id == made[1].id:
        return Curves([], "Both runs have the very same model: it was trained once.")
    try:
        histories = [(source.run.id, training.history_of(source)) for source in (before, after)]
    except ContentError as error:
        return Curves([], f"{error}.")
    charts = _charts([(run, history) for run, history in histories if history is not None])
    return Curves(charts, "" if charts else "The two trainings have no metric in common.")


def _charts(histories: list[tuple[str, History]]) -> list[Lines]:
    first, second = (history for _run, history in histories)
    few = max(first.epochs, second.epochs) <= training.FEW_EPOCHS
    charts = [
        Lines(name, _lines(histories, name), x="epoch", y=name, markers=few)
        for name in first.metrics
        if name in second.metrics
    ]
    if first.learning_rate and second.learning_rate:
        lines = [
            Line(run, list(enumerate(history.learning_rate or [], 1)), group=group)
            for group, (run, history) in enumerate(histories)
        ]
        charts.append(Lines(LEARNING_RATE, lines, x="epoch", y=LEARNING_RATE, markers=few))
    return charts


def _lines(histories: list[tuple[str, History]], metric: str) -> list[Line]:
    named = (("training", metric, False), ("validation", f"{VALIDATION}{metric}", True))
    return [
        Line(f"{run}, {name}", list(enumerate(history.columns[column], 1)), dashed, group)
        for group, (run, history) in enumerate(histories)
        for name, column, dashed in named
        if column in history.columns
    ]
