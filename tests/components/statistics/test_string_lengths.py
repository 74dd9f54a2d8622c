"""Lengths of texts are counted in bytes and sorted into up to ten bins."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from components.statistics.lengths import StringLengths, length_bins

TEXTS, INTS = pa.large_list(pa.large_binary()), pa.large_list(pa.int64())


def buckets(*batches: pa.Array) -> list[tuple[float, float, float]]:
    generator = StringLengths()
    parts = [generator.add_input(generator.create_accumulator(), None, batch) for batch in batches]
    result = generator.extract_output(generator.merge_accumulators(parts))
    return [(b.low_value, b.high_value, b.sample_count) for each in result.custom_stats for b in each.histogram.buckets]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({4: 3}, [(4, 5, 3)]),
        ({0: 1, 2: 5}, [(0, 1, 1), (1, 2, 0), (2, 3, 5)]),
        ({1: 1, 10: 2}, [(n, n + 1, {1: 1, 10: 2}.get(n, 0)) for n in range(1, 11)]),
        ({0: 1, 10: 2, 11: 4}, [(n, n + 2, {0: 1, 10: 6}.get(n, 0)) for n in range(0, 12, 2)]),
    ],
)
def test_bins_are_equally_wide(counts: dict[int, int], expected: list[tuple[int, int, int]]) -> None:
    assert length_bins(Counter(counts)) == expected


def test_batches_add_up() -> None:
    first = pa.array([[b"ab"], None, [b"", "é".encode()]], TEXTS)
    assert buckets(first, pa.array([[b"a"]], TEXTS)) == [(0, 1, 1), (1, 2, 1), (2, 3, 2)]


@pytest.mark.parametrize("column", [pa.array([[1]], INTS), pa.nulls(3), pa.array([None], TEXTS)])
def test_what_has_no_texts_has_no_lengths(column: pa.Array) -> None:
    assert buckets(column) == []


def test_long_ones_are_rounded_down_within_two_hundredths() -> None:
    generator = StringLengths()
    column = pa.array([[b"x" * length] for length in (127, 128, 129, 4001)], TEXTS)
    assert generator.add_input(generator.create_accumulator(), None, column) == {127: 1, 128: 2, 4000: 1}
