"""How good the model is: metrics against their bars, calibration, confusion, and the curves of a binary model."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents.evaluation import Confusion, Insights, Summary
from metadata.pages.charts import Bins, Histogram, Line, Lines
from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class ConfusionRow:
    """What rows of one class were taken for.

    Attributes:
        label: The class.
        cells: For each predicted class the count and its share of the row's sum.
        total: The row's sum.
    """

    label: str
    cells: list[tuple[int, float]]
    total: int


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of the run's model.

    Attributes:
        summary: Metrics and their bars.
        compared: Whether there was a baseline.
        insights: The closer look, or None where there is none.
        charts: Calibration, score distributions, ROC, precision and recall: those that there are.
        confusion: The rows of the confusion matrix; empty where there is none.
        confusion_labels: Its columns.
        threshold: Of the confusion matrix, or None.
    """

    summary: Summary
    compared: bool
    insights: Insights | None
    charts: list[Lines | Histogram]
    confusion: list[ConfusionRow]
    confusion_labels: list[str]
    threshold: float | None


def read(source: Source, _surroundings: Surroundings) -> Evaluation | None:
    """Reads it; None where the Evaluator did not come to its end."""
    summary, closer = source.evaluation, source.insights
    if summary is None:
        return None
    confusion = closer.confusion if closer else None
    return Evaluation(
        summary=summary,
        compared=any(metric.baseline is not None for metric in summary.metrics),
        insights=closer,
        charts=_charts(closer) if closer else [],
        confusion=_rows(confusion) if confusion else [],
        confusion_labels=confusion.labels if confusion else [],
        threshold=confusion.threshold if confusion else None,
    )


def _charts(found: Insights) -> list[Lines | Histogram]:
    charts: list[Lines | Histogram] = []
    if found.calibration:
        points = [(bin.mean_prediction, bin.mean_label) for bin in found.calibration if bin.mean_prediction is not None]
        line = Line("mean label", points)
        charts.append(Lines("Calibration", [line], x="mean prediction", y="mean label", diagonal=True, markers=True))
    if found.scores:
        series = [Bins(f"label {scores.label}", scores.bins) for scores in found.scores]
        charts.append(Histogram("Predictions by label", series, x="prediction"))
    if found.roc:
        line = Line("model", list(found.roc))
        charts.append(Lines("ROC", [line], x="false positive rate", y="true positive rate", diagonal=True))
    if found.precision_recall:
        line = Line("model", list(found.precision_recall))
        charts.append(Lines("Precision and recall", [line], x="recall", y="precision"))
    return charts


def _rows(confusion: Confusion) -> list[ConfusionRow]:
    return [
        ConfusionRow(label, [(count, count / sum(counts) if sum(counts) else 0.0) for count in counts], sum(counts))
        for label, counts in zip(confusion.labels, confusion.counts, strict=True)
    ]
