"""How far a feature's values in one split are from those in another, and the bar that the schema sets.

Distances equal those of TFDV's validation, as a test verifies: 0 for equal distributions, and at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

from tensorflow_metadata.proto.v0 import schema_pb2

from ui.contents.statistics import Bins, FeatureStatistics, SplitStatistics

L_INFINITY = "L-infinity distance"
JENSEN_SHANNON = "Jensen-Shannon divergence"
ABSOLUTE_DIFFERENCE = "normalized absolute difference"

Comparator = Literal["drift_comparator", "skew_comparator"]

Bin = tuple[float, float, float]
Mass = dict[object, float]
Name = TypeVar("Name", bound=object)


@dataclass(frozen=True)
class Measured:
    """How far apart a feature's values are.

    Attributes:
        feature: The feature.
        measure: The measure's name.
        value: From 0, equal, to 1; None if there is nothing to measure.
        bar: The most that the schema allows, or None.
        largest: For texts, the one whose share differs most.
        note: Why there is no value, or on what it was measured if that is unusual.
    """

    feature: str
    measure: str
    value: float | None
    bar: float | None
    largest: str = ""
    note: str = ""

    @property
    def over(self) -> bool:
        """Whether the value is over the bar."""
        return self.bar is not None and self.value is not None and self.value > self.bar

    @property
    def lost(self) -> bool:
        """Whether there is a bar but no value to compare with it."""
        return self.bar is not None and self.value is None


def measure(
    before: SplitStatistics, after: SplitStatistics, schema: schema_pb2.Schema | None, comparator: Comparator
) -> list[Measured]:
    """Measures every feature that either split has; those over their bars first, then the farthest apart.

    Args:
        before: The split to compare with.
        after: The split to examine.
        schema: The schema, which sets the bars.
        comparator: The comparator in the schema that sets them.
    """
    bars = {} if schema is None else {feature.name: getattr(feature, comparator) for feature in schema.feature}
    measured: list[Measured] = []
    for name in [*after.features, *(name for name in before.features if name not in after.features)]:
        comparators = bars.get(name, schema_pb2.FeatureComparator())
        measured += _feature(name, before.features.get(name), after.features.get(name), comparators)
    return sorted(measured, key=lambda m: (not m.over, not m.lost, m.value is None, -(m.value or 0), m.feature))


def _feature(
    name: str,
    before: FeatureStatistics | None,
    after: FeatureStatistics | None,
    bars: schema_pb2.FeatureComparator,
) -> list[Measured]:
    why_not = _why_not(before, after)
    wanted = _wanted(before, after, bars)
    if why_not or before is None or after is None:
        return [Measured(name, each, None, bar, note=why_not) for each, bar in wanted.items()]
    return [_measured(name, each, bar, before, after, bars) for each, bar in wanted.items()]


def _why_not(before: FeatureStatistics | None, after: FeatureStatistics | None) -> str:
    if before is None or after is None:
        return "new: not there before" if before is None else "gone: there before only"
    for side, statistics in (("before", before), ("now", after)):
        if statistics.numbers is None and statistics.texts is None:
            return f"no values {side}"
    if (before.numbers is None) != (after.numbers is None):
        return f"{before.kind} before, {after.kind} now"
    return ""


def _wanted(
    before: FeatureStatistics | None, after: FeatureStatistics | None, bars: schema_pb2.FeatureComparator
) -> dict[str, float | None]:
    """The measures by name with their bars; if the schema sets none, the usual measure for the feature's kind."""
    is_text = any(side is not None and side.texts is not None for side in (before, after))
    asked = {
        L_INFINITY: bars.infinity_norm,
        JENSEN_SHANNON: bars.jensen_shannon_divergence,
        ABSOLUTE_DIFFERENCE: bars.normalized_abs_difference,
    }
    # TFDV has no counts by value for numbers, so its L-infinity distance for them is always 0.
    bars_by_measure = {
        name: bar.threshold
        for name, bar in asked.items()
        if bar.HasField("threshold") and (is_text or name == JENSEN_SHANNON)
    }
    return bars_by_measure or {L_INFINITY if is_text else JENSEN_SHANNON: None}


def _measured(
    name: str,
    measure_name: str,
    bar: float | None,
    before: FeatureStatistics,
    after: FeatureStatistics,
    bars: schema_pb2.FeatureComparator,
) -> Measured:
    if before.texts is not None and after.texts is not None:
        value, largest = _text_distance(measure_name, before.texts.counts, after.texts.counts)
        return Measured(name, measure_name, value, bar, largest)
    quantiles = bars.jensen_shannon_divergence.source.type == schema_pb2.HistogramSelection.QUANTILES
    value = jensen_shannon_of_bins(
        _bins(before, quantiles), _bins(after, quantiles), _not_numbers(before), _not_numbers(after)
    )
    return Measured(name, measure_name, value, bar, note="between deciles" if quantiles else "")


def _text_distance(
    measure_name: str, before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[float | None, str]:
    if measure_name == JENSEN_SHANNON:
        return jensen_shannon(before, after), ""
    if measure_name == ABSOLUTE_DIFFERENCE:
        return absolute_difference(before, after)
    return l_infinity(before, after)


def _bins(statistics: FeatureStatistics, quantiles: bool) -> Bins:
    if statistics.numbers is None:
        return ()
    return statistics.numbers.quantiles if quantiles else statistics.numbers.bins


def _not_numbers(statistics: FeatureStatistics) -> int:
    return 0 if statistics.numbers is None else statistics.numbers.not_numbers


def l_infinity(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, str]:
    """The largest difference between a value's shares, and that value.

    Args:
        before: Counts by value.
        after: Counts by value.
    """
    return _largest_difference(_shares(before), _shares(after))


def absolute_difference(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, str]:
    """The largest difference between a value's counts, as a share of the sum of all counts, and that value."""
    total = sum(before.values()) + sum(after.values())
    old, new = ({name: count / total for name, count in side.items()} for side in (before, after))
    return _largest_difference(old, new)


def jensen_shannon(before: Mapping[Name, float], after: Mapping[Name, float]) -> float | None:
    """The Jensen-Shannon divergence to base 2 between two distributions over the same names; None if one is empty."""
    old, new = _shares(before), _shares(after)
    if not old or not new:
        return None
    total = 0.0
    for name in old.keys() | new.keys():
        p, q = old.get(name, 0.0), new.get(name, 0.0)
        middle = (p + q) / 2
        total += sum(share * math.log2(share / middle) for share in (p, q) if share > 0)
    return min(total / 2, 1.0)


def jensen_shannon_of_bins(
    before: Sequence[Bin], after: Sequence[Bin], nan_before: int = 0, nan_after: int = 0
) -> float | None:
    """The Jensen-Shannon divergence between two histograms, cut at the edges of both; None if one is empty.

    Values are assumed to be spread evenly within a bin. A bin without width is compared only with those at the same
    point; values in bins without finite ends count as different in the two.

    Args:
        before: `(low, high, count)`, ascending.
        after: The same.
        nan_before: How many values are NaN.
        nan_after: The same.
    """
    edges = _edges(before) | _edges(after)
    # TFDV keeps the counts of NaN only if both histograms already have the same edges, and then counts them as
    # different in the two.
    same = _edges(before) == _edges(after)
    old = _mass(before, sorted(edges), "before", nan_before if same else 0)
    new = _mass(after, sorted(edges), "after", nan_after if same else 0)
    return jensen_shannon(old, new)


def _largest_difference(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, str]:
    differences = {n: abs(before.get(n, 0.0) - after.get(n, 0.0)) for n in sorted(before.keys() | after.keys())}
    worst = max(differences, key=lambda name: differences[name], default="")
    return differences.get(worst, 0.0), worst


def _shares(counts: Mapping[Name, float]) -> dict[Name, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total > 0 else {}


def _edges(bins: Sequence[Bin]) -> set[float]:
    return {edge for low, high, _ in bins if _has_width(low, high) for edge in (low, high)}


def _has_width(low: float, high: float) -> bool:
    return math.isfinite(low) and math.isfinite(high) and low < high


def _mass(bins: Sequence[Bin], edges: Sequence[float], side: str, not_numbers: int) -> Mass:
    """Counts by interval between edges, by point, and by what only this side can have."""
    mass: Mass = {}

    def add(key: object, count: float) -> None:
        mass[key] = mass.get(key, 0.0) + count

    for low, high, count in bins:
        if _has_width(low, high):
            for left, right in pairwise(edge for edge in edges if low <= edge <= high):
                add((left, right), (right - left) / (high - low) * count)
        else:
            add((side, "infinite") if not (math.isfinite(low) and math.isfinite(high)) else low, count)
    if not_numbers:
        add((side, "not a number"), not_numbers)
    return mass
