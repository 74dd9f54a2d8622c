"""How sure the metrics of an evaluation are: their intervals, and those of what they differ from the baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from components.evaluation import bootstrap, intervals, measures, scored
from components.evaluation.intervals import Difference, Interval
from components.evaluation.kept import Array, Kept
from components.evaluation.measures import Measure
from components.evaluation.scored import Scored, SliceKey

TOLERANCE = 0.002
"""How far the value computed from kept rows may be from TFMA's, which puts scores into 10,000 bins for some."""


@dataclass(frozen=True)
class Confidence:
    """What is known about the metrics of one group of rows.

    Attributes:
        values: By metric, computed from the rows that were kept.
        intervals: By metric.
        differences: By metric, where there is a baseline.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, Interval]
    differences: Mapping[str, Difference]

    def interval(self, name: str, value: float | None) -> Interval | None:
        """The interval of a metric whose value TFMA says is this.

        None where there is none, and where the value computed here is another: an interval of another quantity, such as
        that of a metric whose name is known and whose definition is not, is worse than none.
        """
        found = self.intervals.get(name)
        return found if found and _agree(self.values[name], value, found) else None

    def difference(self, name: str, value: float | None, baseline: float | None) -> Difference | None:
        """The difference of a metric whose values TFMA says are these; None as for `interval`."""
        found = self.differences.get(name)
        apart = None if value is None or baseline is None else value - baseline
        return found if found and _agree(found["value"], apart, found) else None


def _agree(ours: float, theirs: float | None, found: Interval) -> bool:
    if theirs is None:
        return False
    return abs(ours - theirs) <= max(TOLERANCE * max(1.0, abs(theirs)), found["high"] - found["low"])


def measure(kept: Kept, names: Sequence[str], slices: Sequence[SliceKey]) -> list[Confidence]:
    """The intervals of metrics.

    Args:
        kept: The rows.
        names: The metrics' class names.
        slices: The groups of rows, by what each is cut by; () is all of them. Differences are made for that alone.

    Returns:
        One for each of `slices`.
    """
    rows, sound = scored.score(kept)
    if rows.task == "other":
        return [Confidence({}, {}, {}) for _ in slices]
    groups = [scored.members(sound, key) for key in slices]
    whole = [not key for key in slices]
    found = [_Group(rows.take(group), names, paired) for group, paired in zip(groups, whole, strict=True)]
    drawn = bootstrap.sums([group.columns() for group in found], groups)
    return [group.confidence(sums) for group, sums in zip(found, drawn, strict=True)]


class _Group:
    """The metrics of one group of rows: those from sums that are drawn anew, and the others."""

    def __init__(self, rows: Scored, names: Sequence[str], paired: bool) -> None:
        self._rows = rows
        self._names = names
        self._baseline = rows.baseline if paired else None
        self._measures: dict[str, Measure] = {}
        self._sums: dict[str, Array] = {}
        self._columns: list[Array] = []
        self._places: dict[tuple[str, bool], slice] = {}
        for name in names if len(rows.labels) else ():
            if found := measures.of(rows.task, name):
                self._add(name, found)

    def _add(self, name: str, found: Measure) -> None:
        columns = found.columns(self._rows.labels, self._rows.predictions)
        self._measures[name], self._sums[name] = found, columns.sum(axis=0, dtype=np.float64)
        if not found.proportion or self._baseline is not None:
            self._place(name, False, columns)
        if self._baseline is not None:
            self._place(name, True, found.columns(self._rows.labels, self._baseline))

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
        found: dict[str, Interval | None] = {}
        differences: dict[str, Difference | None] = {}
        for name, how in self._measures.items():
            values[name] = float(how.value(self._sums[name]))
            found[name] = self._interval(name, how, drawn)
            differences[name] = self._difference(name, how, drawn)
        if self._rows.task == "binary" and len(self._rows.labels):
            self._add_ranked(values, found, differences)
        return Confidence(values, _defined(found), {name: one for name, one in differences.items() if one})

    def _interval(self, name: str, how: Measure, drawn: Array) -> Interval | None:
        if how.proportion:
            successes, trials = self._sums[name]
            return intervals.wilson(round(successes), round(trials))
        return bootstrap.percentiles(how.value(drawn[self._places[name, False]]))

    def _difference(self, name: str, how: Measure, drawn: Array) -> Difference | None:
        if self._baseline is None:
            return None
        theirs = how.columns(self._rows.labels, self._baseline).sum(axis=0, dtype=np.float64)
        value = float(how.value(self._sums[name]) - how.value(theirs))
        ours, others = (how.value(drawn[self._places[name, which]]) for which in (False, True))
        with np.errstate(invalid="ignore"):
            # Not defined where both are infinite.
            found = bootstrap.percentiles(ours - others, "paired bootstrap")
        return Difference(value=value, **found) if found and math.isfinite(value) else None

    def _add_ranked(
        self, values: dict[str, float], found: dict[str, Interval | None], differences: dict[str, Difference | None]
    ) -> None:
        positive, scores = self._rows.labels == 1, self._rows.predictions
        if "AUC" in self._names and (value := intervals.area(positive, scores)) is not None:
            values["AUC"], found["AUC"] = value, intervals.delong(positive, scores)
            if self._baseline is not None:
                differences["AUC"] = intervals.delong_difference(positive, scores, self._baseline)
        if "AUCPrecisionRecall" in self._names and positive.any():
            values["AUCPrecisionRecall"] = bootstrap.precision_recall_value(positive, scores)
            found["AUCPrecisionRecall"] = bootstrap.precision_recall_area(positive, scores)


def _defined(found: Mapping[str, Interval | None]) -> dict[str, Interval]:
    return {name: one for name, one in found.items() if one is not None and math.isfinite(one["low"] + one["high"])}
