"""How long texts are: TFDV's own statistics hold only the mean length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_data_validation.statistics.generators import stats_generator
from tensorflow_metadata.proto.v0 import statistics_pb2

from contracts.file_names import STRING_LENGTHS

MAX_BINS = 10
EXACT_BITS = 7
"""Longer lengths are rounded down to this many leading bits, within 2 %, so that the counters stay small."""

Counts = Counter[int]


class StringLengths(stats_generator.CombinerFeatureStatsGenerator):
    """Counts the lengths in bytes of a feature's texts and sorts them into up to ten bins of equal width."""

    def __init__(self) -> None:
        super().__init__("StringLengths")

    def create_accumulator(self) -> Counts:
        """Empty counts by length."""
        return Counter()

    def add_input(self, accumulator: Counts, feature_path: object, feature_array: pa.Array) -> Counts:
        """Adds the lengths of a batch; values other than text are ignored."""
        values = None if pa.types.is_null(feature_array.type) else feature_array.flatten()
        if values is None or not (pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type)):
            return accumulator
        for entry in pc.value_counts(pc.binary_length(values)).to_pylist():
            accumulator[_rounded(entry["values"])] += entry["counts"]
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Counts]) -> Counts:
        """The sum of the counts of several batches."""
        return sum(accumulators, Counter())

    def extract_output(self, accumulator: Counts) -> statistics_pb2.FeatureNameStatistics:
        """The custom statistic; empty if there are no texts."""
        result = statistics_pb2.FeatureNameStatistics()
        if accumulator:
            custom = result.custom_stats.add(name=STRING_LENGTHS)
            for low, high, count in length_bins(accumulator):
                custom.histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
        return result


def length_bins(counts: Counts) -> list[tuple[int, int, int]]:
    """Up to ten bins `(low, high, count)` of equal width, from low up to but not including high."""
    least, most = min(counts), max(counts)
    width = -(-(most - least + 1) // MAX_BINS)
    starts = range(least, most + 1, width)
    sums = Counter[int]()
    for length, count in counts.items():
        sums[(length - least) // width] += count
    return [(start, start + width, sums[index]) for index, start in enumerate(starts)]


def _rounded(length: int) -> int:
    lost = max(0, length.bit_length() - EXACT_BITS)
    return length >> lost << lost
