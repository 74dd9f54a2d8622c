"""How long texts are: a histogram beside TFDV's own statistics, which hold the mean length alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_data_validation.statistics.generators import stats_generator
from tensorflow_metadata.proto.v0 import statistics_pb2

NAME = "string_lengths"
"""The name of the custom statistic."""

MAX_BINS = 10
EXACT_BITS = 7
"""Lengths that need more bits are rounded down to so many leading ones, within 2 %: what is kept stays small."""

Counts = Counter[int]


class StringLengths(stats_generator.CombinerFeatureStatsGenerator):
    """Counts the lengths, in bytes, of a feature's texts, and makes up to ten equally wide bins of them."""

    def __init__(self) -> None:
        super().__init__("StringLengths")

    def create_accumulator(self) -> Counts:
        """Counts by length."""
        return Counter()

    def add_input(self, accumulator: Counts, feature_path: object, feature_array: pa.Array) -> Counts:
        """Adds the lengths of a batch; what is not text has none."""
        values = None if pa.types.is_null(feature_array.type) else feature_array.flatten()
        if values is None or not (pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type)):
            return accumulator
        for entry in pc.value_counts(pc.binary_length(values)).to_pylist():
            accumulator[_rounded(entry["values"])] += entry["counts"]
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Counts]) -> Counts:
        """The counts of several batches together."""
        return sum(accumulators, Counter())

    def extract_output(self, accumulator: Counts) -> statistics_pb2.FeatureNameStatistics:
        """The custom statistic; none where there are no texts."""
        result = statistics_pb2.FeatureNameStatistics()
        if accumulator:
            custom = result.custom_stats.add(name=NAME)
            for low, high, count in bins(accumulator):
                custom.histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
        return result


def bins(counts: Counts) -> list[tuple[int, int, int]]:
    """Up to ten bins `(low, high, count)` of equally many lengths, from low up to but not including high."""
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
