"""Distances equal those of TFDV's own validation, and what cannot be compared is reported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from ui.contents import drift, statistics
from ui.contents.drift import ABSOLUTE_DIFFERENCE, JENSEN_SHANNON, L_INFINITY

FLOAT, INT, TEXT = (pa.large_list(kind) for kind in (pa.float32(), pa.int64(), pa.large_binary()))
NAN, INF = float("nan"), float("inf")
MEASURES = {
    anomalies_pb2.DriftSkewInfo.Measurement.L_INFTY: L_INFINITY,
    anomalies_pb2.DriftSkewInfo.Measurement.JENSEN_SHANNON_DIVERGENCE: JENSEN_SHANNON,
    anomalies_pb2.DriftSkewInfo.Measurement.NORMALIZED_ABSOLUTE_DIFFERENCE: ABSOLUTE_DIFFERENCE,
}
Proto = statistics_pb2.DatasetFeatureStatisticsList


def computed(**columns: tuple[Iterable[Any], pa.DataType]) -> Proto:
    """TFDV's statistics of columns; shorter ones end in missing values."""
    lists = {name: ([None if v is None else [v] for v in values], kind) for name, (values, kind) in columns.items()}
    rows = max(len(values) for values, _ in lists.values())
    arrays = [pa.array(values + [None] * (rows - len(values)), kind) for values, kind in lists.values()]
    # numpy warns of the mean of infinities.
    with np.errstate(invalid="ignore"):
        return stats_impl.generate_statistics_in_memory(
            pa.RecordBatch.from_arrays(arrays, list(lists)), tfdv.StatsOptions()
        )


def before() -> Proto:
    draw = np.random.default_rng(0)
    return computed(
        normal=(draw.normal(size=500).tolist(), FLOAT),
        skewed=(np.exp(draw.normal(size=500) * 2).tolist(), FLOAT),
        whole=([1, 2, 3] * 9, INT),
        nan=([0.0, 1.0, NAN, NAN] + [0.5] * 20, FLOAT),
        nan_wider=([0.0, 1.0, NAN] + [0.5] * 20, FLOAT),
        infinite=([0.0, 1.0, INF] + [0.5] * 9, FLOAT),
        constant=([1.0] * 20, FLOAT),
        less_constant=([1.0] * 20, FLOAT),
        apart=([0.0, 1.0] * 9, FLOAT),
        text=([b"a"] * 9 + [b"b"], TEXT),
        equal=([b"a", b"b"] * 5, TEXT),
        many=([str(n % 700).encode() for n in range(2000)], TEXT),
    )


def after() -> Proto:
    draw = np.random.default_rng(1)
    return computed(
        normal=(draw.normal(loc=1, size=700).tolist(), FLOAT),
        skewed=(np.exp(draw.normal(size=700) * 2).tolist(), FLOAT),
        whole=([7, 9, 3] * 9, INT),
        nan=([0.0, 1.0, NAN] + [0.2] * 20, FLOAT),
        nan_wider=([0.0, 3.0, NAN] + [0.5] * 20, FLOAT),
        infinite=([0.0, 1.0, INF, -INF] + [0.7] * 9, FLOAT),
        constant=([1.0] * 20, FLOAT),
        less_constant=([2.0, 1.0] * 20, FLOAT),
        apart=([5.0, 6.0] * 9, FLOAT),
        text=([b"a"] * 3 + [b"c"] * 4 + [None] * 2, TEXT),
        equal=([b"b", b"a"] * 9, TEXT),
        many=([str(n % 900).encode() for n in range(3000)], TEXT),
    )


def schema_of(proto: Proto, quantiles: bool) -> schema_pb2.Schema:
    """Every measure on every feature, with a bar."""
    schema = tfdv.infer_schema(proto)
    for feature in schema.feature:
        bars = feature.drift_comparator
        bars.infinity_norm.threshold = 0.01
        bars.normalized_abs_difference.threshold = 0.01
        bars.jensen_shannon_divergence.threshold = 0.01
        if quantiles:
            bars.jensen_shannon_divergence.source.type = schema_pb2.HistogramSelection.QUANTILES
    return schema


@pytest.mark.parametrize("quantiles", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
def test_the_numbers_are_tfdvs(quantiles: bool, backwards: bool) -> None:
    old, new = (after(), before()) if backwards else (before(), after())
    schema = schema_of(old, quantiles)
    measured = drift.measure(
        statistics.statistics_of_split("train", old),
        statistics.statistics_of_split("train", new),
        schema,
        "drift_comparator",
    )
    by_tfdv = {
        (info.path.step[0], MEASURES[each.type]): each.value
        for info in tfdv.validate_statistics(new, schema, previous_statistics=old).drift_skew_info
        for each in info.drift_measurements
    }
    ours = {(row.feature, row.measure): row.value for row in measured}
    assert {name for name, _ in ours} == {f.path.step[0] for f in old.datasets[0].features}
    assert ours == pytest.approx({key: by_tfdv[key] for key in ours}, abs=1e-9)
    # What we leave out are TFDV's distances of numbers by value, which are always 0.
    assert {value for key, value in by_tfdv.items() if key not in ours} == {0.0}


def split(**columns: tuple[Iterable[Any], pa.DataType]) -> statistics.SplitStatistics:
    return statistics.statistics_of_split("train", computed(**columns))


def test_what_is_over_its_bar_comes_first_and_then_the_farthest_apart() -> None:
    old = split(a=([b"x"] * 4, TEXT), b=([b"x"] * 4, TEXT), c=([b"x"] * 4, TEXT))
    new = split(a=([b"x"] * 4, TEXT), b=([b"x", b"x", b"x", b"y"], TEXT), c=([b"x", b"z"] * 2, TEXT))
    schema = schema_pb2.Schema()
    schema.feature.add(name="b").drift_comparator.infinity_norm.threshold = 0.2
    measured = drift.measure(old, new, schema, "drift_comparator")
    assert [(row.feature, row.measure, row.value, row.bar, row.over, row.largest) for row in measured] == [
        ("b", L_INFINITY, 0.25, 0.2, True, "x"),
        ("c", L_INFINITY, 0.5, None, False, "x"),
        ("a", L_INFINITY, 0.0, None, False, "x"),
    ]


def test_a_value_at_its_bar_is_not_over_it() -> None:
    assert not drift.Measured("a", L_INFINITY, 0.25, 0.25).over


def test_what_cannot_be_compared_is_reported() -> None:
    old = split(gone=([1], INT), kind=([1, 2], INT), empty=([1.5], FLOAT), barred=([1], INT))
    new = split(new=([b"x"], TEXT), kind=([b"x"], TEXT), empty=([None], FLOAT))
    schema = schema_pb2.Schema()
    schema.feature.add(name="barred").drift_comparator.jensen_shannon_divergence.threshold = 0.1
    measured = drift.measure(old, new, schema, "drift_comparator")
    assert [(row.feature, row.value, row.note, row.lost) for row in measured] == [
        ("barred", None, "gone: there before only", True),
        ("empty", None, "no values now", False),
        ("gone", None, "gone: there before only", False),
        ("kind", None, "int before, text now", False),
        ("new", None, "new: not there before", False),
    ]


def test_distances_of_nothing() -> None:
    assert drift.jensen_shannon({}, {"a": 1.0}) is None
    assert drift.jensen_shannon_of_bins((), ((0.0, 1.0, 3.0),)) is None
    assert drift.l_infinity({}, {}) == (0.0, "")


def test_the_divergence_by_hand() -> None:
    # m = (3/4, 1/4); half of log2(4/3) + half of (1/2 log2(2/3) + 1/2 log2(2)).
    assert drift.jensen_shannon({"a": 8.0}, {"a": 5.0, "b": 5.0}) == pytest.approx(0.311278, abs=1e-6)
    assert drift.jensen_shannon_of_bins(((0.0, 1.0, 8.0),), ((0.0, 2.0, 10.0),)) == pytest.approx(0.311278, abs=1e-6)
