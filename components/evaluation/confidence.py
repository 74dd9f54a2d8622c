"""Values and confidence intervals of metrics, computed from the predictions table and checked against TFMA's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from components.evaluation import areas, estimates, intervals, measures, predictions
from components.evaluation.areas import Area
from components.evaluation.estimates import ALL_ROWS, Estimate, Sampling
from components.evaluation.levels import Levels, LevelsBySlice
from components.evaluation.measures import Measure
from components.evaluation.predictions import Array, PredictionsTable, ScoredRows, SliceKey
from contracts.evaluation import Difference, Interval

BINS = 10_000
"""The number of bins in which TFMA counts scores for the areas under curves."""

THRESHOLD_EPSILON = 1e-7
"""TFMA's thresholds are this far above the ends of bins."""

UNDEFINED_DRAWS = "too few rows to tell (some draws of the bootstrap leave it undefined)"


@dataclass(frozen=True)
class ShownArea:
    """An area under a curve.

    Attributes:
        exact: Computed from the scores themselves.
        binned: Computed from the scores in TFMA's bins; equals TFMA's value if that is of the same metric.
    """

    exact: float
    binned: float


@dataclass(frozen=True)
class Confidence:
    """The values and intervals of the metrics of one group of rows.

    Attributes:
        estimates: By metric, for those that have an interval.
        differences: By metric, the candidate's value minus the baseline's.
        reasons: By metric, why it has no interval.
        areas: By metric and whether it is the baseline's; empty if the table lacks rows.
        sampling: How the table's rows were chosen.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    differences: dict[str, Estimate] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    areas: dict[tuple[str, bool], ShownArea] = field(default_factory=dict)
    sampling: Sampling = ALL_ROWS

    def value(self, name: str, tfma_value: float | None, of_baseline: bool = False) -> float | None:
        """The value of a metric to show: TFMA's value, or the exact area under a curve instead of TFMA's binned one.

        Where many scores fall into one bin, as in a slice they may, TFMA's area is far from the exact one.
        """
        area = self.areas.get((name, of_baseline))
        same_metric = (
            area is not None and tfma_value is not None and abs(area.binned - tfma_value) <= estimates.TOLERANCE
        )
        return area.exact if area and same_metric else tfma_value

    def interval(self, name: str, shown: float | None) -> Interval | None:
        """The interval of a metric whose value is shown as this.

        None if there is none, or if the value computed here differs. An interval of a different quantity, such as that
        of a metric with a known name but another definition, is worse than none.
        """
        estimate = self.estimates.get(name)
        return estimate.interval(shown, self.sampling) if estimate and shown is not None else None

    def no_interval(self, name: str, shown: float | None) -> str | None:
        """Why a metric whose value is shown as this has no interval; None if it has one, or if no method is known."""
        estimate = self.estimates.get(name)
        if estimate and shown is not None and self.interval(name, shown) is None:
            return f"another quantity (the rows that were kept give {estimate.value:.4g})"
        return self.reasons.get(name)

    def difference(self, name: str, shown: float | None, baseline: float | None) -> Difference | None:
        """The difference of a metric whose values are shown as these; None in the same cases as for `interval`."""
        estimate = self.differences.get(name)
        if estimate is None or shown is None or baseline is None:
            return None
        interval = estimate.interval(shown - baseline, self.sampling)
        return Difference(value=shown - baseline, **dict(interval)) if interval else None


def measure_confidence(
    table: PredictionsTable,
    names: Sequence[str],
    slices: Sequence[SliceKey],
    levels: LevelsBySlice | None = None,
) -> list[Confidence]:
    """The intervals of metrics.

    Args:
        table: The rows.
        names: The metrics' class names.
        slices: The keys of the groups of rows; () is all rows.
        levels: The scores of all rows, where the table may lack some.

    Returns:
        One for each of `slices`.
    """
    rows, sound = predictions.score_rows(table)
    if rows.task == "other":
        return [Confidence() for _ in slices]
    members = [predictions.rows_of_slice(sound, key) for key in slices]
    # It is not known how TFMA treats a row whose prediction is not a number, so then its own areas are shown.
    exact = len(rows.labels) == table.rows
    sampling = Sampling.of(table)
    groups = [
        _Group(rows.take(group), names, sampling, exact, {} if exact else _levels_of(levels or {}, key))
        for group, key in zip(members, slices, strict=True)
    ]
    drawn = intervals.bootstrap_sums([group.columns() for group in groups], members)
    return [group.confidence(sums) for group, sums in zip(groups, drawn, strict=True)]


def _levels_of(levels: LevelsBySlice, key: SliceKey) -> dict[bool, Levels]:
    """The scores of a slice, by whether they are the baseline's."""
    return {model: levels[tuple(key), model] for model in (False, True) if (tuple(key), model) in levels}


class _Group:
    """The metrics of one group of rows: those that are functions of sums over rows, and the areas under curves."""

    def __init__(
        self, rows: ScoredRows, names: Sequence[str], sampling: Sampling, exact: bool, levels: Mapping[bool, Levels]
    ) -> None:
        self._rows, self._names, self._sampling, self._exact, self._levels = rows, names, sampling, exact, levels
        self._columns: dict[tuple[str, bool], Array] = {}
        self._measures: dict[str, Measure] = {}
        for name in names if len(rows.labels) else ():
            if measure := measures.measure_named(rows.task, name):
                self._measures[name] = measure
                for of_baseline, predicted in self._models():
                    columns = measure.columns(rows.labels, predicted) * rows.weights[:, None]
                    self._columns[name, of_baseline] = columns

    def _models(self) -> list[tuple[bool, Array]]:
        """The predictions of each model that there is, with whether it is the baseline."""
        baseline = self._rows.baseline
        return [(False, self._rows.predictions), *([] if baseline is None else [(True, baseline)])]

    def _drawn(self) -> dict[tuple[str, bool], Array]:
        """The columns to bootstrap; proportions need it only for their difference, not for their interval."""
        compared = self._rows.baseline is not None
        return {key: part for key, part in self._columns.items() if compared or not self._measures[key[0]].proportion}

    def columns(self) -> Array:
        """The columns to sum up over bootstrapped rows, [n, s]."""
        return np.concatenate([np.zeros((len(self._rows.labels), 0)), *self._drawn().values()], axis=1)

    def confidence(self, drawn: Array) -> Confidence:
        """The intervals.

        Args:
            drawn: The sums of `columns`, [s, replicates].
        """
        ends = np.cumsum([columns.shape[1] for columns in self._drawn().values()])[:-1]
        replicates = dict(zip(self._drawn(), np.split(drawn, ends), strict=False))
        result = Confidence(sampling=self._sampling)
        for name, measure in self._measures.items():
            if estimate := self._estimate(name, measure, replicates):
                result.estimates[name] = estimate
            elif math.isfinite(self._value(name, False)):
                result.reasons[name] = UNDEFINED_DRAWS
            if self._rows.baseline is not None and (difference := self._difference(name, measure, replicates)):
                result.differences[name] = difference
        if self._rows.task == "binary":
            self._add_areas(result)
        return result

    def _value(self, name: str, of_baseline: bool) -> float:
        return float(self._measures[name].value(self._columns[name, of_baseline].sum(axis=0, dtype=np.float64)))

    def _estimate(self, name: str, measure: Measure, drawn: Mapping[tuple[str, bool], Array]) -> Estimate | None:
        if measure.proportion:
            return estimates.proportion(*self._columns[name, False].T)
        return estimates.bootstrapped(self._value(name, False), measure.value(drawn[name, False]), intervals.BOOTSTRAP)

    def _difference(self, name: str, measure: Measure, drawn: Mapping[tuple[str, bool], Array]) -> Estimate | None:
        with np.errstate(invalid="ignore"):
            # Not defined where both are infinite.
            value = self._value(name, False) - self._value(name, True)
            replicates = measure.value(drawn[name, False]) - measure.value(drawn[name, True])
        return estimates.bootstrapped(value, replicates, f"paired {intervals.BOOTSTRAP}")

    def _add_areas(self, result: Confidence) -> None:
        """Adds the areas under the curves of binary scores."""
        weighty = self._rows.weights > 0
        positive, weights = self._rows.labels[weighty] == 1, self._rows.weights[weighty]
        if positive.all() or not positive.any():
            return
        scores = [predicted[weighty] for _, predicted in self._models()]
        under_roc = [areas.roc(positive, model_scores, weights).value for model_scores in scores]
        for name, curve in _CURVES.items():
            if name not in self._names:
                continue
            sampled = [curve.area(positive, model_scores, weights) for model_scores in scores]
            shown = self._shown(curve, [(positive, model_scores, weights) for model_scores in scores])
            result.areas.update({(name, model): area for model, area in shown.items()})
            # Compared with the value that is shown.
            values = [
                area.value if shown or self._sampling.fraction == 1 else curve.binned(positive, model_scores, weights)
                for area, model_scores in zip(sampled, scores, strict=True)
            ]
            if reason := areas.too_few(positive, weights, under_roc[:1], curve.misranked):
                result.reasons[name] = reason
            else:
                result.estimates[name] = estimates.area(values[0], sampled[0].standard_error, curve.method)
            if len(sampled) == 2 and areas.too_few(positive, weights, under_roc, curve.misranked) is None:
                method = f"paired {curve.method}"
                result.differences[name] = estimates.area_difference(
                    values[0] - values[1], sampled[0], sampled[1], method
                )

    def _shown(self, curve: _Curve, rows: Sequence[tuple[Array, Array, Array]]) -> dict[bool, ShownArea]:
        """The areas over all rows, by whether they are the baseline's; empty if not all are known.

        Args:
            curve: The curve.
            rows: For each model positive rows, scores and weights, as the table has them.
        """
        models = [of_baseline for of_baseline, _ in self._models()]
        if not self._exact:
            rows = [self._levels[model].rows() for model in models if model in self._levels]
        if len(rows) < len(models):
            return {}
        return {
            model: ShownArea(curve.area(*of_model).value, curve.binned(*of_model))
            for model, of_model in zip(models, rows, strict=True)
        }


@dataclass(frozen=True)
class _Curve:
    """A curve whose area is a metric.

    Attributes:
        area: Computes the area from positive rows, scores and weights.
        method: How its standard error is estimated.
        misranked: The number of misranked rows that an interval needs.
    """

    area: Callable[[Array, Array, Array], Area]
    method: str
    misranked: int

    def binned(self, positive: Array, scores: Array, weights: Array) -> float:
        """The area of scores in TFMA's bins."""
        return self.area(positive, _binned(scores), weights).value


_CURVES = {
    "AUC": _Curve(areas.roc, "DeLong", areas.MISRANKED_FOR_ROC),
    "AUCPrecisionRecall": _Curve(areas.precision_recall, "linearized", areas.MISRANKED_FOR_PRECISION_RECALL),
}


def _binned(scores: Array) -> Array:
    """The bins in which TFMA counts scores.

    TFMA first divides [0, 1) into `BINS` equal bins, and then places the lower end of each among `BINS` thresholds that
    are slightly further apart, so that the two lowest bins become one.
    """
    lower_ends = np.floor(scores.astype(np.float64) * BINS) / BINS
    thresholds = np.arange(1, BINS - 1) / (BINS - 1) + THRESHOLD_EPSILON
    return np.asarray(np.searchsorted(thresholds, lower_ends, side="right"))
