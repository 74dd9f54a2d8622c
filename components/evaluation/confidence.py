"""How sure an evaluation is: values and intervals computed from the rows that it kept, held against TFMA's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from components.evaluation import intervals, measures, predictions
from components.evaluation.measures import Measure
from components.evaluation.predictions import Array, PredictionsTable, ScoredRows, SliceKey
from contracts.evaluation import Difference, Interval

TOLERANCE = 0.002
"""How far a value computed from the table may be from TFMA's, times the value where that is more than 1."""

ROUNDING = 1e-6
"""How far sums in float32 may take a value out of its interval."""

BINS = 10_000
"""TFMA counts scores between so many thresholds, from 0 to 1, for the areas under curves."""


@dataclass(frozen=True)
class Area:
    """The area under a curve.

    Attributes:
        exact: Of the scores themselves.
        binned: Of the scores in TFMA's bins: what TFMA says, if it measures the same.
    """

    exact: float
    binned: float


@dataclass(frozen=True)
class Confidence:
    """What is known about the metrics of one group of rows.

    Attributes:
        values: By metric, computed from the rows of the table.
        intervals: By metric.
        differences: By metric, where there is a baseline.
        areas: By metric and whether it is the baseline's; nothing where the table lacks rows.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, Interval]
    differences: Mapping[str, Difference]
    areas: Mapping[tuple[str, bool], Area] = field(default_factory=dict)

    def value(self, name: str, theirs: float | None, of_baseline: bool = False) -> float | None:
        """The value to show of a metric that TFMA says is `theirs`: that, or an area as it is without bins.

        Where many scores are in one bin, as those of the rows of a slice may be, TFMA's area is far from the exact one.
        """
        area = self.areas.get((name, of_baseline))
        same_metric = area is not None and theirs is not None and abs(area.binned - theirs) <= TOLERANCE
        return area.exact if area and same_metric else theirs

    def interval(self, name: str, shown: float | None) -> Interval | None:
        """The interval of a metric whose value is shown as this.

        None where there is none, and where the value computed here is another: an interval of another quantity, such as
        that of a metric whose name is known and whose definition is not, is worse than none.
        """
        interval = self.intervals.get(name)
        return _around(interval, self.values[name], shown) if interval else None

    def difference(self, name: str, shown: float | None, baseline: float | None) -> Difference | None:
        """The difference of a metric whose values are shown as these; None as for `interval`."""
        difference = self.differences.get(name)
        if difference is None or shown is None or baseline is None:
            return None
        ends = _around(difference, difference.value, shown - baseline)
        return difference.model_copy(update={"low": ends.low, "high": ends.high}) if ends else None


def _around(interval: Interval, ours: float, shown: float | None) -> Interval | None:
    """The interval of the value computed here as that of the value shown; None if they are not the same metric's."""
    slack = ROUNDING * max(1.0, abs(ours))
    if shown is None or abs(ours - shown) > TOLERANCE * max(1.0, abs(shown)):
        return None
    if not interval.low - slack <= ours <= interval.high + slack:
        return None
    if interval.low <= shown <= interval.high:
        return interval
    low, high = (end + shown - ours for end in (interval.low, interval.high))
    return interval.model_copy(update={"low": min(low, shown), "high": max(high, shown)})


def measure_confidence(table: PredictionsTable, names: Sequence[str], slices: Sequence[SliceKey]) -> list[Confidence]:
    """The intervals of metrics.

    Args:
        table: The rows.
        names: The metrics' class names.
        slices: The groups of rows, by what each is cut by; () is all of them.

    Returns:
        One for each of `slices`.
    """
    rows, sound = predictions.score_rows(table)
    if rows.task == "other":
        return [Confidence({}, {}, {}) for _ in slices]
    groups = [predictions.rows_of_slice(sound, key) for key in slices]
    all_kept = len(rows.labels) == table.rows
    measured = [_Group(rows.take(group), names, all_kept) for group in groups]
    drawn = intervals.bootstrap_sums([group.columns() for group in measured], groups)
    return [group.confidence(sums) for group, sums in zip(measured, drawn, strict=True)]


class _Group:
    """The metrics of one group of rows: those from sums that are drawn anew, and the others."""

    def __init__(self, rows: ScoredRows, names: Sequence[str], all_kept: bool) -> None:
        self._rows = rows
        self._all_kept = all_kept
        self._names = names
        self._baseline = rows.baseline
        self._measures: dict[str, Measure] = {}
        self._sums: dict[str, Array] = {}
        self._columns: list[Array] = []
        self._places: dict[tuple[str, bool], slice] = {}
        for name in names if len(rows.labels) else ():
            if measure := measures.measure_named(rows.task, name):
                self._add(name, measure)

    def _add(self, name: str, measure: Measure) -> None:
        columns = measure.columns(self._rows.labels, self._rows.predictions)
        self._measures[name], self._sums[name] = measure, columns.sum(axis=0, dtype=np.float64)
        if not measure.proportion or self._baseline is not None:
            self._place(name, False, columns)
        if self._baseline is not None:
            self._place(name, True, measure.columns(self._rows.labels, self._baseline))

    def _place(self, name: str, of_baseline: bool, columns: Array) -> None:
        start = sum(column.shape[1] for column in self._columns)
        self._places[name, of_baseline] = slice(start, start + columns.shape[1])
        self._columns.append(columns)

    def columns(self) -> Array:
        """What is to be summed up over rows that are drawn anew, [n, s]."""
        return np.concatenate(self._columns, axis=1) if self._columns else np.zeros((len(self._rows.labels), 0))

    def confidence(self, drawn: Array) -> Confidence:
        """The intervals.

        Args:
            drawn: The sums of `columns`, [s, replicates].
        """
        values: dict[str, float] = {}
        known: dict[str, Interval | None] = {}
        differences: dict[str, Difference | None] = {}
        for name, how in self._measures.items():
            values[name] = float(how.value(self._sums[name]))
            known[name] = self._interval(name, how, drawn)
            differences[name] = self._difference(name, how, drawn)
        if self._rows.task == "binary" and len(self._rows.labels):
            self._add_ranked(values, known, differences)
        areas = self._areas() if self._all_kept and self._rows.task == "binary" else {}
        differences_made = {name: one for name, one in differences.items() if one}
        return Confidence(values, _defined_intervals(known), differences_made, areas)

    def _areas(self) -> dict[tuple[str, bool], Area]:
        positive = self._rows.labels == 1
        if positive.all() or not positive.any():
            return {}
        models = {False: self._rows.predictions} | ({} if self._baseline is None else {True: self._baseline})
        return {
            (name, of_baseline): Area(area(positive, scores), area(positive, _binned(scores)))
            for of_baseline, scores in models.items()
            for name, area in _AREAS.items()
            if name in self._names
        }

    def _interval(self, name: str, how: Measure, drawn: Array) -> Interval | None:
        if how.proportion:
            successes, trials = self._sums[name]
            return intervals.wilson(round(successes), round(trials))
        return intervals.percentiles(how.value(drawn[self._places[name, False]]))

    def _difference(self, name: str, how: Measure, drawn: Array) -> Difference | None:
        if self._baseline is None:
            return None
        theirs = how.columns(self._rows.labels, self._baseline).sum(axis=0, dtype=np.float64)
        value = float(how.value(self._sums[name]) - how.value(theirs))
        ours, others = (how.value(drawn[self._places[name, which]]) for which in (False, True))
        with np.errstate(invalid="ignore"):
            # Not defined where both are infinite.
            interval = intervals.percentiles(ours - others, "paired bootstrap")
        return Difference(value=value, **dict(interval)) if interval and math.isfinite(value) else None

    def _add_ranked(
        self, values: dict[str, float], known: dict[str, Interval | None], differences: dict[str, Difference | None]
    ) -> None:
        positive, scores = self._rows.labels == 1, self._rows.predictions
        if "AUC" in self._names and (value := intervals.roc_area(positive, scores)) is not None:
            values["AUC"], known["AUC"] = value, intervals.delong(positive, scores)
            if self._baseline is not None:
                differences["AUC"] = intervals.delong_difference(positive, scores, self._baseline)
        if "AUCPrecisionRecall" in self._names and positive.any():
            values["AUCPrecisionRecall"] = intervals.precision_recall_value(positive, scores)
            known["AUCPrecisionRecall"] = intervals.precision_recall_area(positive, scores)


_AREAS: dict[str, Callable[[Array, Array], Any]] = {
    "AUC": intervals.roc_area,
    "AUCPrecisionRecall": intervals.precision_recall_value,
}


def _binned(scores: Array) -> Array:
    """Scores in TFMA's bins: its first threshold is below 0, the others end the bins, which they belong to."""
    return np.asarray(np.maximum(np.ceil(scores * (BINS - 1)), 1))


def _defined_intervals(known: Mapping[str, Interval | None]) -> dict[str, Interval]:
    return {name: one for name, one in known.items() if one is not None and math.isfinite(one.low + one.high)}
