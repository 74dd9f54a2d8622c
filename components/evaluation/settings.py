"""The settings under `evaluator:` in a recipe."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from contracts.settings import Settings

PREDICTIONS_FILE = "predictions.npz"
"""Label and prediction of each row that was kept, see `predictions.PredictionsTable`."""


class MetricBar(Settings):
    """What a metric must reach for the model to be pushed; a metric without a bar is only reported.

    Attributes:
        lower_bound: The model is refused below this value.
        upper_bound: The model is refused above this value.
        max_loss: How much worse than the latest blessed model it may be, in the metric's own unit.
        direction: Which way is better; `max_loss` needs to know.
    """

    lower_bound: float | None = None
    upper_bound: float | None = None
    max_loss: float | None = Field(default=None, ge=0)
    direction: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"

    @model_validator(mode="after")
    def _ordered(self) -> "MetricBar":
        if self.lower_bound is not None and self.upper_bound is not None and self.lower_bound > self.upper_bound:
            raise ValueError(
                f"lower_bound must not exceed upper_bound; received {self.lower_bound} and {self.upper_bound}"
            )
        return self

    @property
    def gates(self) -> bool:
        """Whether this bar can refuse a model."""
        return not (self.lower_bound is None and self.upper_bound is None and self.max_loss is None)


# TFMA and Keras metrics whose value cannot leave [0, 1]: a bar outside it is a slip, found before anything runs.
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


class EvaluatorSettings(Settings):
    """What is measured on the evaluation split, and what must be reached.

    Attributes:
        metrics: TFMA or Keras metric class names, each with its bar (or nothing).
        slices: Raw features by whose values the metrics are broken down; a list crosses several.
        prediction_key: Which output of the model is judged, where it serves several.
        example_weight: A raw feature with the weight of each row, at least 0, in all metrics and intervals.
        min_slice_rows: Slices with fewer rows are left out of the printed table; TFMA's output holds them all.
    """

    metrics: dict[str, MetricBar] = Field(min_length=1)
    slices: list[list[str]] = Field(default_factory=list)
    prediction_key: str | None = None
    example_weight: str | None = None
    min_slice_rows: int = Field(default=30, ge=1)

    @field_validator("metrics", mode="before")
    @classmethod
    def _bare_metrics(cls, metrics: object) -> object:
        return {name: bar or {} for name, bar in metrics.items()} if isinstance(metrics, dict) else metrics

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
            for bound in (bar.lower_bound, bar.upper_bound):
                if name in UNIT_INTERVAL_METRICS and bound is not None and not 0 <= bound <= 1:
                    raise ValueError(f"{name} lies between 0 and 1; received the bound {bound}")
        return self
