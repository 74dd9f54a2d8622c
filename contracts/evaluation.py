"""What the Evaluator writes: its verdict and metrics (summary.json), and a closer look at the model (insights.json).

Fields that have a default are missing in what older versions wrote.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from contracts.content import HasFiles, Record, read_record

SUMMARY_FILE = "summary.json"
"""Beside TFMA's own files."""

INSIGHTS_FILE = "insights.json"
"""Beside it: what a report shows of the model."""


class Bar(Record):
    """What a metric had to reach.

    Attributes:
        lower_bound: At least this.
        upper_bound: At most this.
        max_loss: How much worse than the baseline it could be.
        direction: Which way is better.
    """

    lower_bound: float | None = None
    upper_bound: float | None = None
    max_loss: float | None = None
    direction: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"

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
        level: How often such an interval holds the true value, a fraction.
        method: How it was made.
        standard_error: Of what it is an interval of; None where the method has none, as Wilson's.
    """

    low: float
    high: float
    level: float = 0.95
    method: str = ""
    standard_error: float | None = None


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
        value: TFMA's; of an area under a curve (AUC, AUCPrecisionRecall) the exact one where the evaluation kept all
            rows, for TFMA counts scores in 10,000 bins. None where it is not defined.
        baseline: The baseline's value, computed likewise, or None.
        passed: Whether `value` reached its bar.
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
        slice: The values that its rows have in common, such as `hour=7 and company=Blue`.
        rows: How many these are.
        metrics: By name, as `Metric.value` is computed; None where a metric is not defined.
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
    def values(self) -> dict[str, float | None]:
        """The values by metric; None where a metric is not defined."""
        return {metric.name: metric.value for metric in self.metrics}

    @property
    def missed(self) -> list[Metric]:
        """The metrics that did not reach their bars."""
        return [metric for metric in self.metrics if not metric.passed]


Point = tuple[float, float]


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
    mean_prediction: float
    mean_label: float


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
    bins: list[tuple[float, float, int]]


class WorstExample(Record):
    """A row that the model got most wrong.

    Attributes:
        loss: How wrong: the cross-entropy, or the squared error of a number; None where the prediction is no number.
        label: The truth: a class's name or a number.
        prediction: What the model gave: a number, or one for each class; None for one that is not finite.
        predicted: What that means: a class's name, or None.
        features: The raw values by feature. `{"image": "data:…"}` and `{"bytes": length}` stand for bytes, and
            `{"more": count}` at the end for values that are left out.
    """

    loss: float | None
    label: Any
    prediction: Any
    predicted: Any = None
    features: dict[str, list[Any]]


class Insights(Record):
    """What insights.json holds; what a task does not have is None or empty.

    Attributes:
        task: What is predicted; of `other` kinds of labels and predictions nothing more is known.
        rows: Rows of the evaluation split.
        rows_kept: Those that this rests on.
        classes: The classes' names.
        calibration: Predictions against what came true, in bins that have rows.
        calibration_error: The mean distance of prediction and label over the bins, weighted by rows.
        confusion: Of classes.
        scores: By label.
        roc: (false positive rate, true positive rate).
        precision_recall: (recall, precision).
        worst: Highest loss first.
    """

    task: Literal["binary", "multiclass", "regression", "other"]
    rows: int
    rows_kept: int
    classes: list[str] | None = None
    calibration: list[CalibrationBin] = Field(default_factory=list)
    calibration_error: float | None = None
    confusion: Confusion | None = None
    scores: list[Scores] | None = None
    roc: list[Point] | None = None
    precision_recall: list[Point] | None = None
    worst: list[WorstExample] = Field(default_factory=list)


def read_summary(evaluation: HasFiles) -> Summary:
    """The summary of an evaluation.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(evaluation.file(SUMMARY_FILE), Summary)


def read_insights(evaluation: HasFiles) -> Insights | None:
    """The insights of an evaluation; None where it has none, as older ones.

    Raises:
        ContentError: They are broken.
    """
    path = evaluation.file(INSIGHTS_FILE)
    return read_record(path, Insights) if path.exists() else None
