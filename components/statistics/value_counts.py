"""How often each text occurs: what TFDV estimates by sketches in memory, and counts exactly only on Beam."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_data_validation import constants
from tensorflow_data_validation.statistics.generators import top_k_uniques_sketch_stats_generator as sketches
from tensorflow_data_validation.utils.top_k_uniques_stats_util import FeatureValueCount
from tfx_bsl.arrow import array_util

LARGE_BYTES = 1024
"""Longer texts, images for instance, are counted together, and only told apart: nobody reads them in a table."""

MAX_WAITING = 2**18
"""How many counts of batches may wait to be added up."""


class ValueCounts(sketches.TopKUniquesSketchStatsGenerator):
    """TFDV's generator of most frequent values and of the number of different ones, with exact counts.

    Args:
        num_top_values: See TFDV's StatsOptions.
        num_rank_histogram_buckets: Likewise.
    """

    def __init__(self, num_top_values: int, num_rank_histogram_buckets: int) -> None:
        super().__init__(num_top_values=num_top_values, num_rank_histogram_buckets=num_rank_histogram_buckets)
        self._most = max(num_top_values, num_rank_histogram_buckets)

    def _update_combined_sketch_for_feature(
        self, feature_name: Any, values: pa.Array, weights: Any, accumulator: dict[Any, Any]
    ) -> None:
        flattened, _ = array_util.flatten_nested(values)
        accumulator.setdefault(feature_name, _Counts(self._most)).add(flattened)


class _Counts:
    """The values of a feature, in the form of TFDV's sketch."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self._large: set[bytes] = set()
        self._large_count = 0

    def add(self, values: pa.Array) -> None:
        """Counts more values."""
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            lengths = pc.fill_null(pc.binary_length(values), 0)
            if len(values) and pc.max(lengths).as_py() > LARGE_BYTES:
                large = values.filter(pc.greater(lengths, LARGE_BYTES))
                self._large.update(hashlib.sha256(value.as_buffer()).digest() for value in large)
                self._large_count += len(large)
                values = values.filter(pc.less_equal(lengths, LARGE_BYTES))
        counts = pc.value_counts(values)
        self._parts.append(pa.table({"value": counts.field("values"), "count": counts.field("counts")}))
        self._waiting += len(counts)
        if self._waiting > MAX_WAITING:
            total = self._total()
            # What has been added up does not wait: many different values must not be added up with every batch.
            self._parts, self._waiting = [total], 0

    def merge(self, other: _Counts) -> None:
        """Adds the counts of other rows."""
        self._parts += other._parts
        self._waiting += other._waiting
        self._large |= other._large
        self._large_count += other._large_count

    def estimate(self) -> Any:
        """The number of different values, and the most frequent ones."""
        total = self._total()
        # Of equally frequent ones those that TFDV ranks higher, the last in the alphabet.
        order = [("count", "descending"), ("value", "descending")]
        most = total.take(pc.select_k_unstable(total, self._most, order))
        counts = [FeatureValueCount(row["value"], row["count"]) for row in most.to_pylist()]
        if self._large_count:
            counts.append(FeatureValueCount(constants.LARGE_BYTES_PLACEHOLDER, self._large_count))
        return sketches._CombinedEstimate(len(total) + len(self._large), counts, [])

    def _total(self) -> pa.Table:
        summed = pa.concat_tables(self._parts).group_by("value").aggregate([("count", "sum")])
        return pa.table({"value": summed["value"], "count": summed["count_sum"]})
