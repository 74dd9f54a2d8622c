"""What the statistics of a run say about its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

_TYPES = {
    statistics_pb2.FeatureNameStatistics.INT: schema_pb2.INT,
    statistics_pb2.FeatureNameStatistics.FLOAT: schema_pb2.FLOAT,
    statistics_pb2.FeatureNameStatistics.STRING: schema_pb2.BYTES,
    statistics_pb2.FeatureNameStatistics.BYTES: schema_pb2.BYTES,
    statistics_pb2.FeatureNameStatistics.STRUCT: schema_pb2.STRUCT,
}

# What TFDV counts in place of values that are no UTF-8, and of very long ones.
_PLACEHOLDERS = {"__BYTES_VALUE__", "__LARGE_BYTES__"}


@dataclass(frozen=True)
class Column:
    """A column in one split.

    Attributes:
        split: The split's name.
        num_rows: The split's rows.
        num_present: How many of them have a value.
        type: The schema's type of the values.
        fewest: The lowest number of values in a row that has any.
        most: The highest.
        lowest: The lowest number, in columns of numbers that have any.
        highest: The highest.
        counts: How often each text occurs, the most frequent first; empty for numbers.
        all_counted: Whether `counts` holds every text there is.
    """

    split: str
    num_rows: int
    num_present: int
    type: int
    fewest: int
    most: int
    lowest: float | None
    highest: float | None
    counts: Mapping[str, int]
    all_counted: bool


Columns = Mapping[str, Mapping[str, Column]]
"""By name and split; a column that a split does not have is not in it."""


def columns(statistics: Mapping[str, statistics_pb2.DatasetFeatureStatistics]) -> Columns:
    """The columns of all splits.

    Args:
        statistics: By split.
    """
    found: dict[str, dict[str, Column]] = {}
    for split, data_set in statistics.items():
        for feature in data_set.features:
            name = ".".join(feature.path.step) or feature.name
            found.setdefault(name, {})[split] = _column(split, int(data_set.num_examples), feature)
    return found


def _column(split: str, num_rows: int, feature: statistics_pb2.FeatureNameStatistics) -> Column:
    numbers, texts = feature.num_stats, feature.string_stats
    kind = feature.WhichOneof("stats")
    stats = getattr(feature, kind)
    common = stats if kind == "struct_stats" else stats.common_stats
    of_numbers = kind == "num_stats" and common.num_non_missing > 0
    buckets = texts.rank_histogram.buckets
    return Column(
        split=split,
        num_rows=num_rows,
        num_present=int(common.num_non_missing),
        type=_TYPES[feature.type],
        fewest=int(common.min_num_values),
        most=int(common.max_num_values),
        lowest=numbers.min if of_numbers else None,
        highest=numbers.max if of_numbers else None,
        counts={b.label: int(b.sample_count) for b in buckets if b.label not in _PLACEHOLDERS},
        all_counted=sum(bucket.sample_count for bucket in buckets) >= common.tot_num_values,
    )
