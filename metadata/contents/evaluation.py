"""What the Evaluator found: its verdict and metrics (summary.json), and a closer look at the model (insights.json)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from metadata.contents import places, reading
from metadata.contents.reading import Record
from metadata.records import ArtifactRecord


class Bar(Record):
    """What a metric had to reach.

    Attributes:
        lower_bound: At least this.
        upper_bound: At most this.
        max_loss: How much worse than the baseline it could be.
    """

    lower_bound: float | None = None
    upper_bound: float | None = None
    max_loss: float | None = None

    def __str__(self) -> str:
        parts = []
        if self.lower_bound is not None:
            parts.append(f"≥ {self.lower_bound:g}")
        if self.upper_bound is not None:
            parts.append(f"≤ {self.upper_bound:g}")
        if self.max_loss is not None:
            parts.append(f"loses ≤ {self.max_loss:g}")
        return ", ".join(parts)


class Interval(Record):
    """A confidence interval.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        level: The confidence, a fraction.
        method: How it was found.
    """

    low: float
    high: float
    level: float = 0.95
    method: str = ""


class Difference(Interval):
    """How far the candidate is from the baseline on the same rows.

    Attributes:
        value: The candidate's value less the baseline's.
    """

    value: float


class Metric(Record):
    """A metric on the whole evaluation split.

    Attributes:
        name: The metric.
        value: None where it is not defined.
        baseline: The baseline's value, or None.
        passed: Whether it reached its bar.
        bar: The bar; nothing in it where there is none.
        interval: Where it was computed.
        difference: Where there is a baseline, and it was computed.
    """

    name: str
    value: float | None
    baseline: float | None = None
    passed: bool = True
    bar: Bar = Bar()
    interval: Interval | None = None
    difference: Difference | None = None


class Slice(Record):
    """A part of the evaluation split.

    Attributes:
        slice: The values that its rows have in common.
        rows: How many these are.
        metrics: By name; None where a metric is not defined.
        intervals: By metric, where they were computed.
    """

    slice: str
    rows: int
    metrics: dict[str, float | None]
    intervals: dict[str, Interval | None] = Field(default_factory=dict)


class Summary(Record):
    """What summary.json holds.

    Attributes:
        blessed: Whether every bar was reached.
        rows: Rows of the evaluation split.
        metrics: In the order of the recipe.
        slices: Largest first.
    """

    blessed: bool
    rows: int
    metrics: list[Metric]
    slices: list[Slice] = Field(default_factory=list)

    @property
    def missed(self) -> list[Metric]:
        """The metrics that did not reach their bars."""
        return [metric for metric in self.metrics if not metric.passed]


class CalibrationBin(Record):
    """Rows with about the same prediction.

    Attributes:
        low: The lowest prediction that belongs to it.
        high: The highest.
        rows: How many rows it has.
        mean_prediction: Their mean prediction.
        mean_label: Their mean label; of a perfectly calibrated model the same.
    """

    low: float
    high: float
    rows: int
    mean_prediction: float | None
    mean_label: float | None


class Confusion(Record):
    """How often which class was taken for which.

    Attributes:
        labels: The classes.
        counts: [truth, prediction].
        threshold: From which score on a binary model says yes, or None.
    """

    labels: list[str]
    counts: list[list[int]]
    threshold: float | None = None

    @model_validator(mode="after")
    def _square(self) -> Confusion:
        sizes = {len(self.counts), *(len(row) for row in self.counts)}
        if sizes != {len(self.labels)}:
            raise ValueError(f"expected as many rows and columns as labels, {len(self.labels)}; received {sizes}")
        return self


class Scores(Record):
    """How the scores of rows with one label are distributed.

    Attributes:
        label: The label.
        bins: `(low, high, count)`.
    """

    label: str
    bins: list[tuple[float, float, float]]


class WorstExample(Record):
    """A row that the model got most wrong.

    Attributes:
        loss: How wrong.
        label: The truth.
        prediction: What the model gave.
        predicted: What that means, such as a class.
        features: The raw values by feature; `{"image": "data:…"}` and `{"bytes": n}` stand for bytes.
    """

    loss: float
    label: Any
    prediction: Any
    predicted: Any = None
    features: dict[str, list[Any]]


class Insights(Record):
    """What insights.json holds; what a task does not have is None or empty.

    Attributes:
        task: What is predicted.
        rows: Rows of the evaluation split.
        rows_kept: Those that this rests on.
        classes: The classes' names.
        calibration: Bins by prediction.
        calibration_error: The mean distance of prediction and label over the bins, weighted by rows.
        confusion: Of classes.
        scores: By label.
        roc: (false positive rate, true positive rate).
        precision_recall: (recall, precision).
        worst: Highest loss first.
    """

    task: Literal["binary", "multiclass", "regression"]
    rows: int
    rows_kept: int
    classes: list[str] | None = None
    calibration: list[CalibrationBin] = Field(default_factory=list)
    calibration_error: float | None = None
    confusion: Confusion | None = None
    scores: list[Scores] | None = None
    roc: list[tuple[float, float]] | None = None
    precision_recall: list[tuple[float, float]] | None = None
    worst: list[WorstExample] = Field(default_factory=list)


def summary(evaluation: ArtifactRecord) -> Summary:
    """The summary of an evaluation.

    Raises:
        ContentError: It is missing or broken.
    """
    return reading.record(evaluation.file(places.SUMMARY_FILE), Summary)


def insights(evaluation: ArtifactRecord) -> Insights | None:
    """The insights of an evaluation; None where it has none, as older ones.

    Raises:
        ContentError: They are broken.
    """
    path = evaluation.file(places.INSIGHTS_FILE)
    return reading.record(path, Insights) if path.exists() else None
