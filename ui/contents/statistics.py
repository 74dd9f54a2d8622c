"""The statistics that StatisticsGen wrote: a record for each feature of each split."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorflow_metadata.proto.v0 import statistics_pb2

from contracts import content
from contracts.file_names import STATISTICS_FILE, STRING_LENGTHS
from metadata.records import ArtifactRecord

Bins = tuple[tuple[float, float, float], ...]
"""`(low, high, count)`, ascending; counts are estimates."""

FIRST_SPLITS = ("train", "eval")

# TFDV counts this in place of bytes that are not UTF-8.
BYTES_MARK = "__BYTES_VALUE__"

LIST = statistics_pb2.DatasetFeatureStatisticsList

KINDS = {"INT": "int", "FLOAT": "float", "STRING": "text", "BYTES": "bytes", "STRUCT": "struct"}


@dataclass(frozen=True)
class Numbers:
    """Statistics of a feature's numbers.

    Attributes:
        min: The smallest.
        max: The largest.
        mean: Their mean.
        std_dev: Their standard deviation.
        median: Their median, an estimate.
        zeros: How many are zero.
        not_numbers: How many are NaN.
        bins: Ten equally wide bins, and any bins without a finite end.
        quantiles: The bins between the deciles.
    """

    min: float
    max: float
    mean: float
    std_dev: float
    median: float
    zeros: int
    not_numbers: int
    bins: Bins
    quantiles: Bins

    @property
    def deciles(self) -> list[float]:
        """The eleven values at 0 %, 10 %, … 100 %; fewer if the statistics have fewer."""
        return [self.quantiles[0][0], *(high for _, high, _ in self.quantiles)] if self.quantiles else []


@dataclass(frozen=True)
class Texts:
    """Statistics of a feature's texts.

    Attributes:
        total: How many there are.
        unique: How many are distinct; an estimate if there are many.
        top: The commonest with their counts, commonest first.
        counts: All counts by text, at most a thousand.
        mean_length: In bytes.
        lengths: Bins of lengths in bytes; empty if none were counted.
        not_text: How many are bytes that are not UTF-8, such as images.
    """

    total: int
    unique: int
    top: tuple[tuple[str, float], ...]
    counts: dict[str, float] = field(repr=False)
    mean_length: float
    lengths: Bins
    not_text: int


@dataclass(frozen=True)
class FeatureStatistics:
    """A feature of a split.

    Attributes:
        name: The steps of its path, joined by dots.
        kind: `int`, `float`, `text`, `bytes` or `struct`.
        rows: The split's rows.
        missing: Rows without a value.
        values: Values in all rows together.
        fewest: The fewest values in a row that has any.
        most: The most values in a row.
        numbers: Statistics of its numbers, if it has any.
        texts: Statistics of its texts, if it has any.
    """

    name: str
    kind: str
    rows: int
    missing: int
    values: int
    fewest: int
    most: int
    numbers: Numbers | None
    texts: Texts | None

    @property
    def missing_share(self) -> float:
        """Missing rows as a share of the split's, 0 to 1."""
        return self.missing / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class SplitStatistics:
    """A split.

    Attributes:
        name: Such as `train`.
        rows: How many it has.
        features: By name, in the order of the statistics.
    """

    name: str
    rows: int
    features: dict[str, FeatureStatistics]


def read_statistics(artifact: ArtifactRecord) -> dict[str, SplitStatistics]:
    """Reads the splits of an ExampleStatistics artifact by name: train, then eval, then others.

    Raises:
        ContentError: A file is missing or broken.
    """
    return {
        split: statistics_of_split(split, content.read_proto(split_folder(artifact, split) / STATISTICS_FILE, LIST))
        for split in split_names(artifact)
    }


def split_names(artifact: ArtifactRecord) -> list[str]:
    """The names of an artifact's splits: train, then eval, then others."""
    names = json.loads(artifact.properties.get("split_names") or "[]")
    return [*(name for name in FIRST_SPLITS if name in names), *(name for name in names if name not in FIRST_SPLITS)]


def split_folder(artifact: ArtifactRecord, split: str) -> Path:
    """The folder of a split's files in an artifact."""
    return artifact.path / f"Split-{split}"


def statistics_of_split(split: str, proto: statistics_pb2.DatasetFeatureStatisticsList) -> SplitStatistics:
    """Converts the statistics of a split; if there are slices, the first, which is the whole split."""
    if not proto.datasets:
        return SplitStatistics(split, 0, {})
    whole = proto.datasets[0]
    rows = int(whole.num_examples)
    features = (_feature(feature, rows) for feature in whole.features)
    return SplitStatistics(split, rows, {feature.name: feature for feature in features})


def _feature(proto: statistics_pb2.FeatureNameStatistics, rows: int) -> FeatureStatistics:
    held = proto.WhichOneof("stats")
    common = getattr(proto, held).common_stats if held else statistics_pb2.CommonStatistics()
    # A feature within a struct can only be missing in rows that have the struct, which may be fewer than the split's.
    present = int(common.num_non_missing)
    return FeatureStatistics(
        name=".".join(proto.path.step) or proto.name,
        kind=KINDS[statistics_pb2.FeatureNameStatistics.Type.Name(proto.type)],
        rows=rows,
        missing=int(common.num_missing),
        values=int(common.tot_num_values) or round(present * common.avg_num_values),
        fewest=int(common.min_num_values),
        most=int(common.max_num_values),
        numbers=_numbers(proto.num_stats) if held == "num_stats" and present else None,
        texts=_texts(proto) if held == "string_stats" and present else None,
    )


def _numbers(proto: statistics_pb2.NumericStatistics) -> Numbers:
    histograms = {histogram.type: histogram for histogram in proto.histograms}
    standard = histograms.get(statistics_pb2.Histogram.STANDARD, statistics_pb2.Histogram())
    quantiles = histograms.get(statistics_pb2.Histogram.QUANTILES, statistics_pb2.Histogram())
    return Numbers(
        min=proto.min,
        max=proto.max,
        mean=proto.mean,
        std_dev=proto.std_dev,
        median=proto.median,
        zeros=int(proto.num_zeros),
        not_numbers=int(standard.num_nan),
        bins=_bins(standard.buckets),
        quantiles=_bins(quantiles.buckets),
    )


def _texts(proto: statistics_pb2.FeatureNameStatistics) -> Texts:
    stats = proto.string_stats
    counts: dict[str, float] = {}
    for bucket in stats.rank_histogram.buckets:
        counts.setdefault(bucket.label, bucket.sample_count)
    lengths = next((custom.histogram for custom in proto.custom_stats if custom.name == STRING_LENGTHS), None)
    return Texts(
        total=int(stats.common_stats.tot_num_values) or round(sum(counts.values())),
        unique=int(stats.unique),
        top=tuple((value.value, value.frequency) for value in stats.top_values if value.value != BYTES_MARK),
        counts=counts,
        mean_length=stats.avg_length,
        lengths=_bins(lengths.buckets) if lengths else (),
        not_text=int(stats.invalid_utf8_count),
    )


def _bins(buckets: Iterable[statistics_pb2.Histogram.Bucket]) -> Bins:
    return tuple((bucket.low_value, bucket.high_value, bucket.sample_count) for bucket in buckets)


def finite_bins(bins: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """The bins with finite ends, which can be drawn."""
    return [(low, high, count) for low, high, count in bins if math.isfinite(low) and math.isfinite(high)]
