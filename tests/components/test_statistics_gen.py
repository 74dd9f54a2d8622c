"""StatisticsGen: both paths give TFDV's statistics, and missing values count as missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.types import standard_artifacts

from components import statistics_gen

ROWS = [
    {"fare": 0.5 * number, "hour": number % 24, "company": "Blue" if number % 3 else [], "empty": None}
    for number in range(60)
]


@pytest.fixture
def statistics(artifact: Callable[..., Any], examples: Callable[..., Any]) -> Callable[[], dict[str, Any]]:
    """Runs the executor on ROWS (train) and their first ten (eval); returns the statistics by split."""

    def run() -> dict[str, Any]:
        raw, output = examples(train=ROWS, eval=ROWS[:10]), artifact(standard_artifacts.ExampleStatistics)
        statistics_gen.Executor().Do({"examples": [raw]}, {"statistics": [output]}, {"exclude_splits": "[]"})
        assert output.split_names == raw.split_names
        return {split: _read(output.uri, split) for split in ("train", "eval")}

    return run


def _read(uri: str, split: str) -> Any:
    statistics_list = statistics_pb2.DatasetFeatureStatisticsList()
    statistics_list.ParseFromString(Path(uri, f"Split-{split}", "FeatureStats.pb").read_bytes())
    [data_set] = statistics_list.datasets
    return data_set


def by_name(data_set: Any) -> dict[str, Any]:
    return {feature.path.step[0]: feature for feature in data_set.features}


def test_values_and_missing_values_are_counted(statistics: Callable[[], dict[str, Any]]) -> None:
    splits = statistics()
    assert (splits["train"].num_examples, splits["eval"].num_examples) == (60, 10)
    features = by_name(splits["train"])
    company, fare = features["company"].string_stats, features["fare"].num_stats
    assert (company.common_stats.num_missing, company.common_stats.num_non_missing) == (20, 40)
    assert (fare.common_stats.num_missing, fare.min, fare.max) == (0, 0.0, 29.5)
    assert fare.mean == pytest.approx(14.75)
    assert features["hour"].num_stats.max == 23
    assert by_name(splits["eval"])["company"].string_stats.common_stats.num_missing == 4


def test_a_column_without_any_value_is_missing_in_every_row(statistics: Callable[[], dict[str, Any]]) -> None:
    empty = by_name(statistics()["train"])["empty"]
    kind = empty.WhichOneof("stats")
    assert getattr(empty, kind).common_stats.num_missing == 60


def test_lengths_of_texts_are_counted(statistics: Callable[[], dict[str, Any]]) -> None:
    features = by_name(statistics()["train"])
    [lengths] = features["company"].custom_stats
    assert lengths.name == "string_lengths"
    assert [(b.low_value, b.high_value, b.sample_count) for b in lengths.histogram.buckets] == [(4, 5, 40)]
    assert not features["fare"].custom_stats
    assert not features["empty"].custom_stats


def test_large_splits_give_the_same_statistics(
    statistics: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = statistics()
    monkeypatch.setattr(statistics_gen, "SMALL_BYTES", -1)
    monkeypatch.setattr(statistics_gen, "_in_memory", None)
    large = statistics()
    for split in ("train", "eval"):
        assert by_name(large[split]).keys() == by_name(small[split]).keys()
        for name, feature in by_name(small[split]).items():
            assert _comparable(by_name(large[split])[name]) == _comparable(feature), (split, name)


def _comparable(feature: Any) -> dict[str, Any]:
    """The statistics that do not depend on how the rows were divided (unlike sketches of quantiles)."""
    stats = getattr(feature, feature.WhichOneof("stats"))
    common = stats.common_stats
    summary = {"type": feature.type, "missing": common.num_missing, "values": common.tot_num_values}
    if feature.WhichOneof("stats") == "num_stats":
        return {**summary, "range": (stats.min, stats.max), "mean": pytest.approx(stats.mean), "zeros": stats.num_zeros}
    summary["lengths"] = [str(statistic) for statistic in feature.custom_stats]
    return {**summary, "unique": stats.unique, "top": [(top.value, top.frequency) for top in stats.top_values]}


def lists(*values: list[int] | None) -> pa.Array:
    return pa.array(values, pa.large_list(pa.int64()))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lists([1], [], [2]), [[1], None, [2]]),
        (lists([], [], [2, 3]), [None, None, [2, 3]]),
        (lists([1], None, []), [[1], None, None]),
        (lists([1], [2]), [[1], [2]]),
        (lists([1], None, [2]), [[1], None, [2]]),
        (lists([], []), [None, None]),
        (lists([9], [1], [], [2], [8]).slice(1, 3), [[1], None, [2]]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_lists_without_values_become_null(column: pa.Array, expected: list[list[int] | None]) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["a"])
    assert statistics_gen.missing_as_null(batch).column(0).to_pylist() == expected


def test_a_batch_without_rows_stays_without_rows() -> None:
    batch = pa.RecordBatch.from_arrays([lists()], ["a"])
    assert statistics_gen.missing_as_null(batch).num_rows == 0


def test_the_files_of_a_split_are_sorted(examples: Callable[..., Any]) -> None:
    raw = examples(train=ROWS[:1], eval=ROWS[:1])
    folder = Path(raw.uri, "Split-train")
    for name in ("b.gz", "a.gz"):
        (folder / name).touch()
    assert [Path(path).name for path in statistics_gen.split_files(raw, "train")] == [
        "a.gz",
        "b.gz",
        "data_tfrecord-00000-of-00001.gz",
    ]


def test_decoding_reads_all_files_in_order(examples: Callable[..., Any]) -> None:
    raw = examples(train=[{"a": 1}, {"a": None}], eval=[{"a": 3}])
    files = [*statistics_gen.split_files(raw, "train"), *statistics_gen.split_files(raw, "eval")]
    assert statistics_gen.decode(files).to_pydict() == {"a": [[1], None, [3]]}
