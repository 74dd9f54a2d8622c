"""How far a feature's values in one split are from those in another, beside the bar that the schema sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tensorflow_metadata.proto.v0 import schema_pb2

from metadata.contents import distances
from metadata.contents.statistics import Bins, FeatureStatistics, SplitStatistics

L_INFINITY = "L-infinity distance"
JENSEN_SHANNON = "Jensen-Shannon divergence"
ABSOLUTE_DIFFERENCE = "normalized absolute difference"

Comparator = Literal["drift_comparator", "skew_comparator"]


@dataclass(frozen=True)
class Measured:
    """How far apart a feature's values are.

    Attributes:
        feature: The feature.
        measure: The measure's name.
        value: From 0, equal, to 1; None where there is nothing to measure.
        bar: The most that the schema allows, or None.
        largest: Of texts the one whose share differs most.
        note: Why there is no value, or what it was measured on where that is unusual.
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
        """Whether there is a bar, and nothing that it could be held to."""
        return self.bar is not None and self.value is None


def measure(
    before: SplitStatistics, after: SplitStatistics, schema: schema_pb2.Schema | None, comparator: Comparator
) -> list[Measured]:
    """Measures every feature that either has; what is over its bar first, then the farthest apart first.

    Args:
        before: What is compared with.
        after: What is looked at.
        schema: Sets the bars.
        comparator: Which of the schema's comparators sets them.
    """
    bars = {} if schema is None else {feature.name: getattr(feature, comparator) for feature in schema.feature}
    found: list[Measured] = []
    for name in [*after.features, *(name for name in before.features if name not in after.features)]:
        comparators = bars.get(name, schema_pb2.FeatureComparator())
        found += _feature(name, before.features.get(name), after.features.get(name), comparators)
    return sorted(found, key=lambda m: (not m.over, not m.lost, m.value is None, -(m.value or 0), m.feature))


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
    for side, found in (("before", before), ("now", after)):
        if found.numbers is None and found.texts is None:
            return f"no values {side}"
    if (before.numbers is None) != (after.numbers is None):
        return f"{before.kind} before, {after.kind} now"
    return ""


def _wanted(
    before: FeatureStatistics | None, after: FeatureStatistics | None, bars: schema_pb2.FeatureComparator
) -> dict[str, float | None]:
    """The measures by name with their bars; the usual one of the feature's kind where the schema asks for none."""
    is_text = any(found is not None and found.texts is not None for found in (before, after))
    asked = {
        L_INFINITY: bars.infinity_norm,
        JENSEN_SHANNON: bars.jensen_shannon_divergence,
        ABSOLUTE_DIFFERENCE: bars.normalized_abs_difference,
    }
    # Of numbers TFDV has no counts by value, and its L-infinity distance of them is always 0.
    found = {
        name: bar.threshold
        for name, bar in asked.items()
        if bar.HasField("threshold") and (is_text or name == JENSEN_SHANNON)
    }
    return found or {L_INFINITY if is_text else JENSEN_SHANNON: None}


def _measured(
    name: str,
    measure_name: str,
    bar: float | None,
    before: FeatureStatistics,
    after: FeatureStatistics,
    bars: schema_pb2.FeatureComparator,
) -> Measured:
    if before.texts is not None and after.texts is not None:
        value, largest = _of_texts(measure_name, before.texts.counts, after.texts.counts)
        return Measured(name, measure_name, value, bar, largest)
    quantiles = bars.jensen_shannon_divergence.source.type == schema_pb2.HistogramSelection.QUANTILES
    value = distances.jensen_shannon_of_bins(
        _bins(before, quantiles), _bins(after, quantiles), _not_numbers(before), _not_numbers(after)
    )
    return Measured(name, measure_name, value, bar, note="between deciles" if quantiles else "")


def _of_texts(measure_name: str, before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float | None, str]:
    if measure_name == JENSEN_SHANNON:
        return distances.jensen_shannon(before, after), ""
    if measure_name == ABSOLUTE_DIFFERENCE:
        return distances.absolute_difference(before, after)
    return distances.l_infinity(before, after)


def _bins(found: FeatureStatistics, quantiles: bool) -> Bins:
    if found.numbers is None:
        return ()
    return found.numbers.quantiles if quantiles else found.numbers.bins


def _not_numbers(found: FeatureStatistics) -> int:
    return 0 if found.numbers is None else found.numbers.not_numbers
