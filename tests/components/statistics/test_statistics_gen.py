"""StatisticsGen: by columns and on Beam it gives TFDV's statistics, and missing values count as missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from components.statistics import columns, component

ROWS = [
    {"fare": 0.5 * number, "hour": number % 24, "company": "Blue" if number % 3 else [], "empty": None}
    for number in range(60)
]


@pytest.fixture
def statistics(artifact: Callable[..., Any], examples: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Runs the executor on ROWS (train) and their first ten (eval); returns the statistics by split."""

    def run(beam_pipeline_args: Sequence[str] = ()) -> dict[str, Any]:
        raw, output = examples(train=ROWS, eval=ROWS[:10]), artifact(standard_artifacts.ExampleStatistics)
        context = BaseBeamExecutor.Context(beam_pipeline_args=list(beam_pipeline_args))
        executor = component.Executor(context)
        executor.Do({"examples": [raw]}, {"statistics": [output]}, {"exclude_splits": "[]"})
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


def test_values_and_missing_values_are_counted(statistics: Callable[..., dict[str, Any]]) -> None:
    splits = statistics()
    assert (splits["train"].num_examples, splits["eval"].num_examples) == (60, 10)
    features = by_name(splits["train"])
    company, fare = features["company"].string_stats, features["fare"].num_stats
    assert (company.common_stats.num_missing, company.common_stats.num_non_missing) == (20, 40)
    assert (fare.common_stats.num_missing, fare.min, fare.max) == (0, 0.0, 29.5)
    assert fare.mean == pytest.approx(14.75)
    assert features["hour"].num_stats.max == 23
    assert by_name(splits["eval"])["company"].string_stats.common_stats.num_missing == 4


def test_a_column_without_any_value_is_missing_in_every_row(statistics: Callable[..., dict[str, Any]]) -> None:
    empty = by_name(statistics()["train"])["empty"]
    kind = empty.WhichOneof("stats")
    assert getattr(empty, kind).common_stats.num_missing == 60


def test_lengths_of_texts_are_counted(statistics: Callable[..., dict[str, Any]]) -> None:
    features = by_name(statistics()["train"])
    [lengths] = features["company"].custom_stats
    assert lengths.name == "string_lengths"
    assert [(b.low_value, b.high_value, b.sample_count) for b in lengths.histogram.buckets] == [(4, 5, 40)]
    assert not features["fare"].custom_stats
    assert not features["empty"].custom_stats


def test_beam_gives_the_same_statistics(statistics: Callable[..., dict[str, Any]]) -> None:
    ours, theirs = statistics(), statistics(["--runner=DirectRunner", "--sdk_container_image=none"])
    for split in ("train", "eval"):
        assert by_name(ours[split]).keys() == by_name(theirs[split]).keys()
        for name, feature in by_name(ours[split]).items():
            assert _comparable(by_name(theirs[split])[name]) == _comparable(feature), (split, name)


def test_batches_give_the_same_statistics_as_all_rows_at_once(
    statistics: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = statistics()
    monkeypatch.setattr(columns, "BATCH_ROWS", 7)
    for name, feature in by_name(statistics()["train"]).items():
        assert _comparable(by_name(whole["train"])[name]) == _comparable(feature), name


def _comparable(feature: Any) -> dict[str, Any]:
    """The statistics that do not depend on how the rows were divided (unlike sketches of quantiles)."""
    stats = getattr(feature, feature.WhichOneof("stats"))
    common = stats.common_stats
    summary = {"type": feature.type, "missing": common.num_missing, "values": common.tot_num_values}
    if feature.WhichOneof("stats") == "num_stats":
        return {**summary, "range": (stats.min, stats.max), "mean": pytest.approx(stats.mean), "zeros": stats.num_zeros}
    summary["lengths"] = [str(statistic) for statistic in feature.custom_stats]
    return {**summary, "unique": stats.unique, "top": [(top.value, top.frequency) for top in stats.top_values]}
