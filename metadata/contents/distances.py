"""How far two distributions are apart, by the definitions that TFDV's validation uses.

Both are 0 for equal distributions and at most 1. A test holds the numbers equal to TFDV's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Bin = tuple[float, float, float]
Mass = dict[object, float]
Name = TypeVar("Name", bound=object)


def l_infinity(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, str]:
    """The largest difference between the shares of a value, and that value.

    Args:
        before: Counts by value.
        after: Counts by value.
    """
    return _largest_difference(_shares(before), _shares(after))


def absolute_difference(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, str]:
    """The largest difference between the counts of a value as a share of all counts of both, and that value."""
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

    Values are taken to lie evenly within a bin. A bin without width is compared with those at the same point only; what
    lies in bins without a finite end counts as different in the two.

    Args:
        before: `(low, high, count)`, ascending.
        after: The same.
        nan_before: How many values are no numbers.
        nan_after: The same.
    """
    edges = _edges(before) | _edges(after)
    # TFDV keeps the counts of NaN only where both histograms already have the same edges, and then counts them as
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
    """Counts by interval between edges, by point, and by what only this side has."""
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
