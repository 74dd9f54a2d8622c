"""TFDV's histograms of equal widths, computed for all buckets at once.

TFDV compares every bucket with each of a hundred quantiles in Python, through protocol buffers: half of what the
statistics of 500 columns cost. Here the same numbers, to the last bit, come from a few NumPy operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow_data_validation.utils import quantiles_util
from tensorflow_metadata.proto.v0 import statistics_pb2

Array = npt.NDArray[Any]

_tfdv_histogram = quantiles_util.generate_equi_width_histogram


def use_them() -> None:
    """Makes TFDV use them in this process; calling it again changes nothing."""
    quantiles_util.generate_equi_width_histogram = equal_widths


def equal_widths(
    quantiles: Array,
    cumulative_counts: Array,
    finite_min: float,
    finite_max: float,
    num_buckets: int,
    num_pos_inf: float,
) -> statistics_pb2.Histogram:
    """TFDV's `generate_equi_width_histogram`, to which infinite numbers and a range without width are left.

    Args:
        quantiles: The boundaries, ascending.
        cumulative_counts: How many values each of them has up to it; may be sums of weights.
        finite_min: The least finite value.
        finite_max: The greatest.
        num_buckets: Of the result.
        num_pos_inf: How many values are infinite.
    """
    are_usual = np.isfinite(quantiles).all() and not num_pos_inf and finite_min < finite_max
    boundaries = np.linspace(finite_min, finite_max, num_buckets + 1) if are_usual else np.array([np.inf])
    if not np.isfinite(boundaries).all():
        return _tfdv_histogram(quantiles, cumulative_counts, finite_min, finite_max, num_buckets, num_pos_inf)
    lows, highs, weights = _bins(quantiles, cumulative_counts)
    shares = _overlaps(lows.astype(np.float64), highs.astype(np.float64), boundaries[:-1, None], boundaries[1:, None])
    # Added up one after the other, as TFDV does.
    counts = np.cumsum(shares * weights, axis=1)[:, -1]
    result = statistics_pb2.Histogram(type=statistics_pb2.Histogram.STANDARD)
    for low, high, count in zip(boundaries[:-1].tolist(), boundaries[1:].tolist(), counts.tolist(), strict=True):
        result.buckets.add(low_value=low, high_value=high, sample_count=count)
    return result


def _bins(boundaries: Array, cumulative: Array) -> tuple[Array, Array, Array]:
    """Lower bound, upper bound and weight of each bin between boundaries."""
    if (boundaries[:-1] == boundaries[1:]).any():
        return quantiles_util._get_bin_weights(boundaries, cumulative)  # type: ignore[no-any-return]
    weights = np.diff(cumulative.astype(np.float64))
    weights[0] += cumulative[0]
    return boundaries[:-1], boundaries[1:], weights


def _overlaps(lows: Array, highs: Array, start: Array, end: Array) -> Array:
    """Which fraction of each bin [bins] falls into each interval [intervals, 1]; see TFDV's `_overlap`."""
    cut_low, cut_high = np.maximum(lows, start), np.minimum(highs, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where((lows >= start) & (highs <= end), 1.0, (cut_high - cut_low) / (highs - lows))
    shares = np.where((highs < start) | (lows > end), 0.0, shares)
    # A bin that is one value counts where it is the end of an interval, and in the first also where it is the start.
    points_at_start = (lows == highs) & (lows == start)
    points_at_start[0] = False
    return np.where(points_at_start, 0.0, shares)
