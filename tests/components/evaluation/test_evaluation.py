"""TFMA's configuration and the summary of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from evaluation_rows import kept_of
from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2, validation_result_pb2

from components.evaluation import blessing, intervals, predictions, summary
from components.evaluation.component import eval_config
from components.evaluation.predictions import PredictionsTable
from components.evaluation.settings import EvaluatorSettings, MetricBar
from contracts.evaluation import Bar

OVERALL = config_pb2.SlicingSpec()
NO_ROWS = predictions.unknown_table(0)
UNSURE: dict[str, Any] = {"intervals": {"AUC": None, "Recall": None}, "no_intervals": {}}


def settings(metrics: dict[str, Any], **others: Any) -> EvaluatorSettings:
    return EvaluatorSettings.model_validate({"metrics": metrics, **others})


def configured(metrics: dict[str, Any], **others: Any) -> dict[str, Any]:
    _, spec = eval_config("big", settings(metrics, **others)).metrics_specs
    return {metric.class_name: metric for metric in spec.metrics}


def test_each_metric_is_named_by_its_class() -> None:
    found = configured({"AUC": {"lower_bound": 0.5}, "BinaryAccuracy": None})
    assert list(found) == ["AUC", "BinaryAccuracy"]
    assert json.loads(found["AUC"].config) == {"name": "AUC"}


def test_the_label_is_transformed_and_the_raw_values_stay() -> None:
    [model] = eval_config("big", settings({"AUC": {"lower_bound": 0.5}})).model_specs
    assert (model.label_key, model.signature_name) == ("big", "serving_default")
    assert list(model.preprocessing_function_names) == ["transform_label"]


def test_rows_may_have_weights_and_are_counted_all_the_same() -> None:
    bars = {"AUC": {"lower_bound": 0.5}}
    config = eval_config("big", settings(bars, example_weight="fare"))
    assert config.model_specs[0].example_weight_key == "fare"
    assert eval_config("big", settings(bars)).model_specs[0].example_weight_key == ""
    count, spec = config.metrics_specs
    assert ([metric.class_name for metric in count.metrics], count.example_weights.unweighted) == (
        ["ExampleCount"],
        True,
    )
    assert not spec.example_weights.unweighted


def test_one_of_several_outputs_may_be_judged() -> None:
    bars = {"SparseCategoricalAccuracy": {"lower_bound": 0.5}}
    assert eval_config("big", settings(bars)).model_specs[0].prediction_key == ""
    chosen = eval_config("big", settings(bars, prediction_key="probabilities"))
    assert chosen.model_specs[0].prediction_key == "probabilities"


def test_the_overall_slice_comes_first() -> None:
    config = eval_config("big", settings({"AUC": {"lower_bound": 0.5}}, slices=["hour", ["hour", "company"]]))
    assert [list(spec.feature_keys) for spec in config.slicing_specs] == [[], ["hour"], ["hour", "company"]]


def test_bars_hold_on_the_overall_slice_alone() -> None:
    found = configured({"AUC": {"lower_bound": 0.5}, "Recall": None}, slices=["hour"])
    [threshold] = found["AUC"].per_slice_thresholds
    assert list(threshold.slicing_specs) == [OVERALL]
    assert not found["AUC"].HasField("threshold")
    assert not found["Recall"].per_slice_thresholds


def threshold_of(**bar: Any) -> Any:
    [found] = configured({"Recall": bar})["Recall"].per_slice_thresholds
    return found.threshold


def test_bounds_become_value_thresholds() -> None:
    both = threshold_of(lower_bound=0.25, upper_bound=0.75)
    assert both.value_threshold.lower_bound.value == 0.25
    assert both.value_threshold.upper_bound.value == 0.75
    assert not both.HasField("change_threshold")
    lower = threshold_of(lower_bound=0.0).value_threshold
    assert lower.HasField("lower_bound")
    assert not lower.HasField("upper_bound")


@pytest.mark.parametrize(
    ("direction", "sign", "expected"),
    [
        ("higher_is_better", -1, config_pb2.MetricDirection.HIGHER_IS_BETTER),
        ("lower_is_better", 1, config_pb2.MetricDirection.LOWER_IS_BETTER),
    ],
)
def test_the_loss_that_is_allowed_has_the_direction_s_sign(direction: str, sign: int, expected: int) -> None:
    change = threshold_of(max_loss=0.125, direction=direction).change_threshold
    assert (change.absolute.value, change.direction) == (sign * 0.125, expected)


def test_no_loss_at_all_is_a_bar_too() -> None:
    assert MetricBar(max_loss=0).gates
    assert threshold_of(max_loss=0).HasField("change_threshold")


class Output:
    """TFMA's output folder, written record by record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._metrics: list[bytes] = []

    def add(self, key: dict[str, str], model: str = "", diff: bool = False, **values: float) -> None:
        """Adds the metrics of one slice."""
        record = metrics_for_slice_pb2.MetricsForSlice()
        _fill(record.slice_key, key)
        for name, value in values.items():
            pair = record.metric_keys_and_values.add()
            pair.key.name, pair.key.model_name, pair.key.is_diff = name, model, diff
            pair.value.double_value.value = value
        self._metrics.append(record.SerializeToString())

    def read(
        self,
        how: EvaluatorSettings,
        ok: bool = True,
        failures: tuple[tuple[dict[str, str], str], ...] = (),
        rows: PredictionsTable = NO_ROWS,
    ) -> Any:
        """Writes everything and reads its summary."""
        validation = validation_result_pb2.ValidationResult(validation_ok=ok)
        for key, name in failures:
            of_slice = validation.metric_validations_per_slice.add()
            _fill(of_slice.slice_key, key)
            of_slice.failures.add().metric_key.name = name
        self._write("metrics", self._metrics)
        self._write("validations", [validation.SerializeToString()])
        measured = summary.measure(str(self.folder), how, rows)
        summarized = summary.summarize(measured, blessing.decide(measured, how))
        written: dict[str, Any] = json.loads(summarized.model_dump_json())
        return written

    def _write(self, name: str, records: list[bytes]) -> None:
        with tf.io.TFRecordWriter(str(self.folder / f"{name}-00000-of-00001.tfrecord")) as writer:
            for record in records:
                writer.write(record)


def _fill(slice_key: Any, key: dict[str, str]) -> None:
    for column, value in key.items():
        single = slice_key.single_slice_keys.add()
        single.column, single.bytes_value = column, value.encode()


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


TWO = settings({"AUC": {"lower_bound": 0.9}, "Recall": {}}, slices=["hour"], min_slice_rows=10)


def test_a_candidate_alone(output: Output) -> None:
    output.add({}, example_count=1000.0, AUC=0.95, Recall=0.5)
    found = output.read(TWO)
    assert (found["blessed"], found["rows"], found["slices"]) == (True, 1000, [])
    auc, recall = found["metrics"]
    assert (auc["name"], auc["value"], auc["baseline"], auc["passed"]) == ("AUC", 0.95, None, True)
    assert auc["bar"] == Bar(lower_bound=0.9).model_dump()
    assert (recall["name"], recall["value"]) == ("Recall", 0.5)


def test_a_candidate_beside_its_baseline(output: Output) -> None:
    output.add({}, model="candidate", example_count=10.0, AUC=0.95, Recall=0.5)
    output.add({}, model="baseline", example_count=10.0, AUC=0.92, Recall=0.75)
    output.add({}, model="candidate", diff=True, AUC=0.03, Recall=-0.25)
    auc, recall = output.read(TWO)["metrics"]
    assert (auc["value"], auc["baseline"]) == (0.95, 0.92)
    assert (recall["value"], recall["baseline"]) == (0.5, 0.75)


def test_what_was_missed_is_named(output: Output) -> None:
    output.add({}, example_count=10.0, AUC=0.5, Recall=0.5)
    found = output.read(TWO, ok=False, failures=(({}, "AUC"), ({"hour": "3"}, "Recall")))
    assert not found["blessed"]
    assert [metric["passed"] for metric in found["metrics"]] == [False, True]


def test_slices_come_largest_first_without_the_small_ones(output: Output) -> None:
    output.add({}, example_count=1000.0, AUC=0.9, Recall=0.9)
    output.add({"hour": "1"}, example_count=10.0, AUC=0.5, Recall=0.25)
    output.add({"hour": "2"}, example_count=9.0, AUC=0.5, Recall=0.5)
    output.add({"hour": "3"}, example_count=10.0, AUC=float("nan"), Recall=0.5)
    output.add({"hour": "3", "company": "B"}, example_count=11.0, AUC=0.75, Recall=0.5)
    slices = output.read(TWO)["slices"]
    assert [part["features"] for part in slices] == [["hour", "company"], ["hour"], ["hour"]]
    shown = {"slice", "rows", "metrics", *UNSURE}
    assert [{name: part[name] for name in part.keys() & shown} for part in slices] == [
        {"slice": "hour=3 and company=B", "rows": 11, "metrics": {"AUC": 0.75, "Recall": 0.5}, **UNSURE},
        {"slice": "hour=1", "rows": 10, "metrics": {"AUC": 0.5, "Recall": 0.25}, **UNSURE},
        {"slice": "hour=3", "rows": 10, "metrics": {"AUC": None, "Recall": 0.5}, **UNSURE},
    ]


def test_slices_are_compared_with_the_baseline_and_held_to_their_bars(output: Output) -> None:
    labels, scores, worse = [1, 1, 0, 0, 1, 0], [0.9, 0.4, 0.5, 0.1, 0.7, 0.3], [0.9, 0.6, 0.5, 0.1, 0.7, 0.3]
    hours = np.array(([[b"1"]] * 4 + [[b"2"]] * 2) * 10, object)
    rows = kept_of(labels * 10, scores * 10, baseline=worse * 10, features={"hour": hours})
    for model, of_all, of_hour in (("candidate", 0.135, 0.1575), ("baseline", 0.61 / 6, 0.1075)):
        output.add({}, model=model, example_count=60.0, MeanSquaredError=of_all)
        output.add({"hour": "1"}, model=model, example_count=40.0, MeanSquaredError=of_hour)
        output.add({"hour": "2"}, model=model, example_count=20.0, MeanSquaredError=0.09)
    bar = {"upper_bound": 0.5, "direction": "lower_is_better", "slices": {"max_loss": 0.02}}
    how = settings({"MeanSquaredError": bar}, slices=["hour"], min_slice_rows=30)
    summarized = output.read(how, rows=rows)
    [part] = summarized["slices"]
    assert part["differences"]["MeanSquaredError"]["value"] == pytest.approx(0.05)
    assert (part["missed"], part["undecided"]) == (["MeanSquaredError"], [])
    assert summarized["reason"] == (
        "Refused: MeanSquaredError of hour=1 (40 rows) is 0.1575, 0.0500 worse than the served model's, "
        "expected a loss ≤ 0.02."
    )
    assert summarized["not_judged"] == ["Not judged, because they have fewer than 30 rows: hour=2 (20)."]


def test_a_reference_that_is_not_served_is_a_second_model_to_compare_with(output: Output) -> None:
    labels, scores = [0, 0, 1, 1], [0.1, 0.4, 0.3, 0.9]
    for model in ("candidate", "baseline"):
        output.add({}, model=model, example_count=40.0, MeanSquaredError=0.1675)
    how = settings({"MeanSquaredError": {"max_loss": 0.02, "direction": "lower_is_better"}})
    served, best = (kept_of(labels * 10, scores * 10, baseline=other * 10) for other in (scores, [0.1, 0.2, 0.3, 0.9]))
    measured = summary.measure(_written(output, how, served), how, served, best)
    [metric] = measured.metrics
    assert metric.reference_difference is not None
    assert (metric.baseline, metric.reference_difference.value) == (0.1675, pytest.approx(0.03))
    assert blessing.decide(measured, how).reason == (
        "Refused: MeanSquaredError is 0.1675, 0.0300 above the best served model's 0.1375 (allowed 0.0200)."
    )


def _written(output: Output, how: EvaluatorSettings, rows: PredictionsTable) -> str:
    output.read(how, rows=rows)
    return str(output.folder)


def test_the_summary_is_strict_json_even_where_a_metric_is_undefined(output: Output) -> None:
    output.add({}, example_count=10.0, AUC=float("nan"), Recall=float("inf"))
    found = output.read(TWO, ok=False, failures=(({}, "AUC"),))
    assert [metric["value"] for metric in found["metrics"]] == [None, None]
    json.dumps(found, allow_nan=False)


def of_proportion(successes: int, trials: int) -> dict[str, Any]:
    interval = intervals.wilson(successes / trials, trials)
    return {**interval.model_dump(), "low": pytest.approx(interval.low), "high": pytest.approx(interval.high)}


def test_metrics_and_slices_come_with_their_intervals(output: Output) -> None:
    labels, hours = [1, 1, 1, 0, 0, 1] * 5, [[b"1"], [b"1"], [b"1"], [b"1"], [b"2"], [b"2"]] * 5
    scores, worse = [0.9, 0.6, 0.4, 0.5, 0.1, 0.7] * 5, [0.9, 0.3, 0.4, 0.5, 0.1, 0.6] * 5
    rows = kept_of(labels, scores, baseline=worse, features={"hour": np.array(hours, object)})
    output.add({}, model="candidate", example_count=30.0, AUC=0.875, Recall=0.75, Hinge=0.5)
    output.add({}, model="baseline", example_count=30.0, AUC=0.75, Recall=0.5)
    output.add({"hour": "1"}, model="candidate", example_count=20.0, AUC=2 / 3, Recall=2 / 3, Hinge=0.5)
    how = settings({"AUC": {"lower_bound": 0.5}, "Recall": {}, "Hinge": {}}, slices=["hour"], min_slice_rows=3)
    found = output.read(how, rows=rows)
    auc, recall, hinge = found["metrics"]
    assert (recall["interval"], recall["no_interval"]) == (of_proportion(15, 20), None)
    reason = "too few negatives to tell ({} of {} rows; this area takes about {})"
    assert (auc["interval"], auc["no_interval"]) == (None, reason.format(10, 30, 24))
    assert (recall["difference"]["value"], recall["difference"]["method"]) == (0.25, "paired bootstrap")
    assert (hinge["interval"], hinge["difference"], hinge["no_interval"]) == (None, None, None)
    [hour] = found["slices"]
    assert hour["intervals"] == {"AUC": None, "Recall": of_proportion(10, 15), "Hinge": None}
    assert hour["no_intervals"] == {"AUC": reason.format(5, 20, 9)}
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("scores", "exact"), [([1e-5, 2e-5, 3e-5, 4e-5], 1.0), ([4e-5, 3e-5, 2e-5, 1e-5], 0.0)])
def test_bars_judge_the_exact_area_where_tfma_s_bins_are_too_coarse(
    output: Output, scores: list[float], exact: float
) -> None:
    hours = np.array([[b"1"]] * 4, object)
    rows = kept_of([0, 0, 1, 1], scores, features={"hour": hours})
    output.add({}, example_count=4.0, AUC=0.5)
    output.add({"hour": "1"}, example_count=4.0, AUC=0.5)
    bar = settings({"AUC": {"lower_bound": 0.5 + exact / 10}}, slices=["hour"], min_slice_rows=4)
    # TFMA's 0.5 reaches the bar of 0.5 and not that of 0.6.
    failures = (({}, "AUC"),) if exact else ()
    found = output.read(bar, ok=not failures, failures=failures, rows=rows)
    [metric] = found["metrics"]
    assert (metric["value"], metric["passed"], found["blessed"]) == (exact, bool(exact), bool(exact))
    assert found["slices"][0]["metrics"] == {"AUC": exact}


@pytest.mark.parametrize(("max_loss", "blessed"), [(0.3, True), (0.2, False)])
def test_a_loss_is_judged_by_exact_areas_too(output: Output, max_loss: float, blessed: bool) -> None:
    rows = kept_of([0, 0, 1, 1], [2e-5, 1e-5, 1e-5, 3e-5], baseline=[1e-5, 2e-5, 2e-5, 3e-5])
    for model in ("candidate", "baseline"):
        output.add({}, model=model, example_count=4.0, AUC=0.5)
    [metric] = (found := output.read(settings({"AUC": {"max_loss": max_loss}}), rows=rows))["metrics"]
    assert (metric["value"], metric["baseline"], found["blessed"]) == (0.625, 0.875, blessed)
