"""The settings under `evaluator:` in a recipe."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from components.evaluation.metric_names import METRICS, meant
from contracts.settings import Settings

PREDICTIONS_FILE = "predictions.npz"
"""The file with the label and prediction of each row that was kept, see `predictions.PredictionsTable`."""

REFERENCE_PREDICTIONS_FILE = "reference_predictions.npz"
"""The same with the best model served so far as the baseline, if that is a different model."""


class Bounds(Settings):
    """What a value must reach.

    Attributes:
        lower_bound: The model is refused below this value.
        upper_bound: The model is refused above this value.
        max_loss: How much worse than the served model it may be, in the metric's own unit.
    """

    lower_bound: float | None = None
    upper_bound: float | None = None
    max_loss: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lower_bound is not None and self.upper_bound is not None and self.lower_bound > self.upper_bound:
            raise ValueError(
                f"lower_bound must not exceed upper_bound; received {self.lower_bound} and {self.upper_bound}"
            )
        return self

    @property
    def gates(self) -> bool:
        """Whether this bar can refuse a model."""
        return not (self.lower_bound is None and self.upper_bound is None and self.max_loss is None)


class MetricBar(Bounds):
    """What a metric must reach for the model to be pushed; a metric without a bar is only reported.

    Attributes:
        direction: Which way is better, for `max_loss`; by default that of the metric.
        slices: What it must reach in each slice of at least `min_slice_rows` rows. The default is the metric's own bar
            when models are judged by evidence, and no bar when they are judged by points.
    """

    direction: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"
    slices: Bounds | None = None


# TFMA and Keras metrics whose value cannot leave [0, 1]; a bar outside is a mistake, reported before anything runs.
UNIT_INTERVAL_METRICS = frozenset(
    {
        "AUC",
        "AUCPrecisionRecall",
        "BinaryAccuracy",
        "F1Score",
        "Precision",
        "Recall",
        "SparseCategoricalAccuracy",
        "SparseTopKCategoricalAccuracy",
    }
)


def _with_direction(name: str, bar: object) -> object:
    if METRICS[name].better == "lower" and isinstance(bar, dict):
        return {"direction": "lower_is_better", **bar}
    return bar


class EvaluatorSettings(Settings):
    """What is measured on the evaluation split, and what must be reached.

    Attributes:
        metrics: Metrics by name, each with its bar (or nothing); docs/recipes.md lists them by task.
        slices: Raw features by whose values the metrics are broken down; a list crosses several.
        prediction_key: The output of the model that is judged, if it serves several.
        example_weight: A raw feature with the weight of each row, at least 0, in all metrics and intervals.
        min_slice_rows: Slices with fewer rows are not judged and left out of the printed table; TFMA's output holds
            them all.
        judge_by: `points` compares the values themselves with the bars. `evidence` blesses a model that is shown to
            lose at most `max_loss`, and refuses one for a slice only if that is shown to miss its bar.
        when_unsure: What to do with a model, judged by evidence, for which there are too few rows to tell.
        max_gap: By metric, how far apart two slices by the same features may be.
    """

    metrics: dict[str, MetricBar] = Field(min_length=1)
    slices: list[list[str]] = Field(default_factory=list)
    prediction_key: str | None = None
    example_weight: str | None = None
    min_slice_rows: int = Field(default=30, ge=1)
    judge_by: Literal["points", "evidence"] = "points"
    when_unsure: Literal["refuse", "push"] = "refuse"
    max_gap: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @field_validator("metrics", mode="before")
    @classmethod
    def _bare_metrics(cls, metrics: object) -> object:
        if not isinstance(metrics, dict):
            return metrics
        if unknown := [name for name in metrics if name not in METRICS]:
            raise ValueError(f"there is no metric {unknown[0]}. {meant(str(unknown[0]))}")
        return {name: _with_direction(name, bar or {}) for name, bar in metrics.items()}

    @field_validator("slices", mode="before")
    @classmethod
    def _single_features(cls, slices: object) -> object:
        return (
            [[entry] if isinstance(entry, str) else entry for entry in slices] if isinstance(slices, list) else slices
        )

    @model_validator(mode="after")
    def _within_range(self) -> "EvaluatorSettings":
        if not any(bar.gates for bar in self.metrics.values()):
            raise ValueError(
                "at least one metric needs a lower_bound, an upper_bound or a max_loss, or nothing would gate"
            )
        for name, bar in self.metrics.items():
            of_slices = bar.slices or Bounds()
            for bound in (bar.lower_bound, bar.upper_bound, of_slices.lower_bound, of_slices.upper_bound):
                if name in UNIT_INTERVAL_METRICS and bound is not None and not 0 <= bound <= 1:
                    raise ValueError(f"{name} lies between 0 and 1; received the bound {bound}")
        unknown = [name for name in self.max_gap if name not in self.metrics]
        if unknown:
            raise ValueError(f"max_gap names {unknown[0]}, which is not among the metrics: {', '.join(self.metrics)}")
        if self.max_gap and not self.slices:
            raise ValueError("max_gap compares slices, and there are none; name a feature under slices")
        return self

    def slice_bar(self, metric: str) -> Bounds:
        """What a metric must reach in each slice."""
        bar = self.metrics[metric]
        if bar.slices is not None:
            return bar.slices
        return bar if self.judge_by == "evidence" else Bounds()
