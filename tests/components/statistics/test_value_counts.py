"""Texts are counted exactly, however many different ones there are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from components.statistics import value_counts
from components.statistics.value_counts import ValueCounts


def string_stats(*batches: list[bytes]) -> Any:
    """The statistics of a feature whose values come in these batches."""
    generator = ValueCounts(num_top_values=3, num_rank_histogram_buckets=5)
    accumulator = generator.create_accumulator()
    for batch in batches:
        lists = pa.array([[value] for value in batch], pa.large_list(pa.large_binary()))
        accumulator = generator.add_input(accumulator, pa.RecordBatch.from_arrays([lists], ["word"]))
    [feature] = generator.extract_output(accumulator).features
    return feature.string_stats


def test_all_values_are_counted_whatever_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_counts, "MAX_WAITING", 1000)
    rows = [f"{number % 20_000}".encode() for number in range(50_000)]
    stats = string_stats(*(rows[start : start + 7000] for start in range(0, 50_000, 7000)))
    counts = Counter(row.decode() for row in rows)
    assert stats.unique == 20_000
    assert [(top.value, top.frequency) for top in stats.top_values] == [("9999", 3), ("9998", 3), ("9997", 3)]
    assert [bucket.sample_count for bucket in stats.rank_histogram.buckets] == [3] * 5
    assert counts["9999"] == 3


def test_long_values_are_told_apart_but_not_kept() -> None:
    images = [bytes([number]) * 2000 for number in (1, 2, 1)]
    stats = string_stats([b"a", *images], [b"a", b"b", images[1]])
    assert stats.unique == 4
    assert [(top.value, top.frequency) for top in stats.top_values] == [("__LARGE_BYTES__", 4), ("a", 2), ("b", 1)]
