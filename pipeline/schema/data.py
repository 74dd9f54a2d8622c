"""The data of a run: its columns, from their statistics, and how many rows violate a schema."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

if TYPE_CHECKING:
    import pyarrow as pa


MOST_BYTES = 8 * 2**20
"""Rows are read if all splits together have at most this many compressed bytes; 15,002 taxi trips have 0.7 MB and take
0.2 s."""

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4


@dataclass(frozen=True)
class Count:
    """A number of rows.

    Attributes:
        rows: How many; if not exact, a lower bound.
        exact: Whether all rows were counted.
    """

    rows: int
    exact: bool = True

    def __str__(self) -> str:
        noun = "row" if self.rows == 1 else "rows"
        return f"{'' if self.exact else 'at least '}{self.rows:,} {noun}"


AT_LEAST_ONE = Count(1, exact=False)


class Rows:
    """The rows of a run, read when first needed; never if they are too many or gone.

    Args:
        files: The gzip TFRecord files of all splits.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files

    def outside(self, name: str, lowest: float | None, highest: float | None) -> Count:
        """How many rows have a number below `lowest` or above `highest`."""
        # Imported here and below because every command imports this module, and arrow takes 0.2 s to load.
        import pyarrow as pa
        import pyarrow.compute as pc

        count = 0
        for column in self._columns(name):
            values = pc.list_flatten(column)
            outside = pa.array([False] * len(values), pa.bool_())
            if lowest is not None:
                outside = pc.or_kleene(outside, pc.less(values, lowest))
            if highest is not None:
                outside = pc.or_kleene(outside, pc.greater(values, highest))
            count += len(pc.unique(pc.list_parent_indices(column).filter(outside)))
        return Count(count) if count else AT_LEAST_ONE

    def of_length(self, name: str, fewest: int, most: int) -> Count:
        """How many rows have values, but fewer than `fewest` or more than `most`; a `most` of 0 means no limit."""
        import pyarrow.compute as pc

        count = 0
        for column in self._columns(name):
            lengths = pc.fill_null(pc.list_value_length(column), 0)
            wrong = pc.less(lengths, fewest)
            if most:
                wrong = pc.or_(wrong, pc.greater(lengths, most))
            count += pc.sum(pc.and_(wrong, pc.greater(lengths, 0))).as_py() or 0
        return Count(count) if count else AT_LEAST_ONE

    def _columns(self, name: str) -> Iterator[pa.Array]:
        import pyarrow as pa

        for batch in self._batches:
            column = batch.column(name) if name in batch.schema.names else None
            if column is not None and not pa.types.is_null(column.type):
                yield column

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        if sum(map(os.path.getsize, self._files)) > MOST_BYTES:
            return []
        # Of tfx-bsl, only this C++ extension, which does not import TensorFlow.
        from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

        decoder = ExamplesToRecordBatchDecoder()
        return [decoder.DecodeBatch(list(_records(path))) for path in self._files]


def _records(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        while header := file.read(_HEADER.size):
            length, _checksum = _HEADER.unpack(header)
            yield file.read(length)
            file.read(_FOOTER_BYTES)


_TYPES = {
    statistics_pb2.FeatureNameStatistics.INT: schema_pb2.INT,
    statistics_pb2.FeatureNameStatistics.FLOAT: schema_pb2.FLOAT,
    statistics_pb2.FeatureNameStatistics.STRING: schema_pb2.BYTES,
    statistics_pb2.FeatureNameStatistics.BYTES: schema_pb2.BYTES,
    statistics_pb2.FeatureNameStatistics.STRUCT: schema_pb2.STRUCT,
}

# TFDV counts these in place of values that are not UTF-8 and of very long ones.
_PLACEHOLDERS = {"__BYTES_VALUE__", "__LARGE_BYTES__"}


@dataclass(frozen=True)
class Column:
    """A column in one split.

    Attributes:
        split: The split's name.
        num_rows: The split's rows.
        num_present: How many of them have a value.
        type: The type of its values, as the schema has it.
        fewest: The lowest number of values in a row that has any.
        most: The highest.
        lowest: The lowest number, for numeric columns that are not empty.
        highest: The highest.
        counts: How often each text occurs, the most frequent first; empty for numbers.
        all_counted: Whether `counts` has every text.
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
"""By name and split; splits without the column are left out."""


def read_columns(statistics: Mapping[str, statistics_pb2.DatasetFeatureStatistics]) -> Columns:
    """Reads the columns of all splits from their statistics.

    Args:
        statistics: The statistics by split.
    """
    by_name: dict[str, dict[str, Column]] = {}
    for split, data_set in statistics.items():
        for feature in data_set.features:
            name = ".".join(feature.path.step) or feature.name
            by_name.setdefault(name, {})[split] = _column(split, int(data_set.num_examples), feature)
    return by_name


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
