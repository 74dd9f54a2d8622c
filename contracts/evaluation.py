"""What the Evaluator writes: its verdict and metrics (summary.json), and details of the model (insights.json).

Fields with a default are missing from files that older versions wrote.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from contracts.content import HasFiles, Record, read_record

SUMMARY_FILE = "summary.json"
"""Beside TFMA's own files."""

INSIGHTS_FILE = "insights.json"
"""Beside it: details of the model that the report shows."""


class Bar(Record):
    """What a metric had to reach.

    Attributes:
        lower_bound: At least this.
        upper_bound: At most this.
        max_loss: How much worse than the baseline it may be.
        direction: Whether higher or lower is better.
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
        level: The fraction of such intervals that contain the true value.
        method: How it was computed.
        standard_error: The estimate's standard error; None for methods without one, such as Wilson's.
    """

    low: float
    high: float
    level: float = 0.95
    method: str = ""
    standard_error: float | None = None


class Difference(Interval):
    """How far the candidate is from the baseline on the same rows.

    Attributes:
        value: The candidate's value minus the baseline's.
    """

    value: float


class Metric(Record):
    """A metric on the whole evaluation split.

    Attributes:
        name: The metric.
        value: TFMA's value. An area under a curve (AUC, AUCPrecisionRecall) is exact if the evaluation kept all rows,
            for TFMA counts scores in 10,000 bins. None if the metric is undefined.
        baseline: The baseline's value, computed the same way, or None.
        passed: Whether it reached its bar.
        undecided: Whether these rows are too few to tell that; then it has not passed.
        bar: The bar; empty if there is none.
        interval: The value's confidence interval, if it was computed.
        difference: The difference from the baseline, if there is one and it was computed.
        no_interval: Why there is no interval, such as "too few positives to tell (12 of 600 rows; …)", if known.
        reference_difference: The difference from the best model served so far, if that is not the baseline.
    """

    name: str
    value: float | None
    baseline: float | None = None
    passed: bool = True
    undecided: bool = False
    bar: Bar = Bar()
    interval: Interval | None = None
    difference: Difference | None = None
    no_interval: str | None = None
    reference_difference: Difference | None = None


class Slice(Record):
    """A part of the evaluation split.

    Attributes:
        slice: The values that its rows have in common, such as `hour=7 and company=Blue`.
        rows: How many rows these are.
        features: The features that the split is cut by.
        metrics: By name, computed as `Metric.value` is; None if a metric is undefined.
        intervals: By metric, if they were computed.
        no_intervals: By metric, as `Metric.no_interval`.
        differences: From the baseline, by metric, if they were computed.
        missed: The metrics that do not reach their bars for slices.
        undecided: The metrics for which these rows are too few to tell that.
    """

    slice: str
    rows: int
    metrics: dict[str, float | None]
    intervals: dict[str, Interval | None] = Field(default_factory=dict)
    no_intervals: dict[str, str] = Field(default_factory=dict)
    differences: dict[str, Difference | None] = Field(default_factory=dict)
    features: list[str] = Field(default_factory=list)
    missed: list[str] = Field(default_factory=list)
    undecided: list[str] = Field(default_factory=list)


class Summary(Record):
    """The contents of summary.json.

    Attributes:
        blessed: Whether the model may be pushed.
        rows: Rows of the evaluation split.
        metrics: In the order of the recipe.
        slices: Largest first.
        undecided: Whether these rows are too few to tell that the model is good enough; `evaluator.when_unsure` then
            says whether it is blessed.
        reason: Why it is blessed, refused or undecided: a sentence with the numbers.
        not_judged: What no bar was held against, and what these rows cannot tell, a sentence each.
    """

    blessed: bool
    rows: int
    metrics: list[Metric]
    slices: list[Slice] = Field(default_factory=list)
    undecided: bool = False
    reason: str = ""
    not_judged: list[str] = Field(default_factory=list)

    @property
    def values(self) -> dict[str, float | None]:
        """The values by metric; None if a metric is undefined."""
        return {metric.name: metric.value for metric in self.metrics}

    @property
    def missed(self) -> list[Metric]:
        """The metrics that did not reach their bars."""
        return [metric for metric in self.metrics if not metric.passed and not metric.undecided]


Point = tuple[float, float]


class CalibrationBin(Record):
    """Rows with similar predictions.

    Attributes:
        low: The bin's lower edge.
        high: The bin's upper edge.
        rows: How many rows are in it.
        mean_prediction: Their mean prediction.
        mean_label: Their mean label; the same as the mean prediction if the model is perfectly calibrated.
        weight: The sum of their weights, by which both are means; None in older files.
    """

    low: float
    high: float
    rows: int
    mean_prediction: float
    mean_label: float
    weight: float | None = None


class Confusion(Record):
    """How often each class was predicted for each true class.

    Attributes:
        labels: The classes.
        counts: [truth, prediction].
        threshold: The score from which a binary model predicts the positive class, or None.
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
        loss: How wrong: the cross-entropy, or the squared error of a number; None if the prediction is not a number.
        label: The truth: a class's name or a number.
        prediction: The model's output: a number, or one for each class; None for one that is not finite.
        predicted: The predicted class's name, or None.
        features: The raw values by feature. `{"image": "data:…"}` and `{"bytes": length}` stand for bytes, and
            `{"more": count}` at the end for omitted values.
    """

    loss: float | None
    label: Any
    prediction: Any
    predicted: Any = None
    features: dict[str, list[Any]]


class Insights(Record):
    """The contents of insights.json; what does not apply to a task is None or empty.

    Attributes:
        task: What is predicted; `other` labels and predictions get no further analysis.
        rows: Rows of the evaluation split.
        rows_kept: How many of them this is computed from.
        classes: The classes' names.
        calibration: Predictions against labels, in bins that are not empty.
        calibration_error: The mean distance between prediction and label over the bins, weighted by rows.
        confusion: The confusion matrix of the classes.
        scores: The distribution of scores for each label.
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
    """Reads the summary of an evaluation.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(evaluation.file(SUMMARY_FILE), Summary)


def read_insights(evaluation: HasFiles) -> Insights | None:
    """Reads the insights of an evaluation; None if it has none, as in older ones.

    Raises:
        ContentError: They are broken.
    """
    path = evaluation.file(INSIGHTS_FILE)
    return read_record(path, Insights) if path.exists() else None
