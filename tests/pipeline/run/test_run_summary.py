"""The summary of a run, as it is read and as it is shown."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from store_builder import StoreBuilder

from contracts.evaluation import Summary
from contracts.model_reports import NOT_BLESSED, InfraReport, TFLiteReport
from metadata.store import Store
from pipeline.plan.environment import Environment
from pipeline.run import run_summary
from pipeline.run.run_summary import RunSummary

NO_BAR = {"lower_bound": None, "upper_bound": None, "max_loss": None, "direction": "higher_is_better"}


def metric(name: str, value: float, passed: bool = True, baseline: float | None = None, **bar: float) -> dict[str, Any]:
    return {"name": name, "value": value, "passed": passed, "baseline": baseline, "bar": {**NO_BAR, **bar}}


def slice_of(name: str, rows: int, **metrics: float | None) -> dict[str, Any]:
    return {"slice": name, "rows": rows, "metrics": metrics}


def evaluation(*metrics: dict[str, Any], blessed: bool = True, slices: tuple[Any, ...] = ()) -> Summary:
    content = {"blessed": blessed, "rows": 4967, "metrics": list(metrics), "slices": list(slices)}
    return Summary.model_validate(content)


def shown(result: RunSummary) -> list[list[str]]:
    """The printed lines, each as its columns."""
    file = io.StringIO()
    run_summary.show_run_summary(Console(file=file, width=120), result)
    return [
        [cell for cell in line.split("  ") if cell.strip()] for line in file.getvalue().splitlines() if line.strip()
    ]


def cells(result: RunSummary) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in shown(result)]


def test_a_run_without_an_evaluator_shows_nothing_and_missed_nothing() -> None:
    result = RunSummary(None, None)
    assert result.good_enough
    assert shown(result) == []


def test_metrics_are_shown_against_their_bars() -> None:
    result = RunSummary(
        evaluation(
            metric("AUC", 0.94321, baseline=0.94, lower_bound=0.9, max_loss=0.01),
            metric("Calibration", 1.01, lower_bound=0.9, upper_bound=1.1) | {"interval": None},
            metric("Recall", 0.5) | {"interval": {"low": 0.43251, "high": 0.5675, "level": 0.95, "method": "Wilson"}},
        ),
        Path("/serving/taxi/17"),
    )
    assert result.good_enough
    assert cells(result) == [
        ["Evaluation on 4,967 rows"],
        ["Metric", "Value", "95 %", "Bar", "Baseline"],
        ["AUC", "0.9432", "≥ 0.9, loses ≤ 0.01", "0.9400", "passed"],
        ["Calibration", "1.0100", "≥ 0.9, ≤ 1.1", "passed"],
        ["Recall", "0.5000", "(0.433\N{EN DASH}0.568)"],
        ["Pushed to", "/serving/taxi/17"],
    ]


def test_in_a_narrow_terminal_no_number_is_cut() -> None:
    interval = {"interval": {"low": 0.98736, "high": 0.99904, "level": 0.95, "method": "Wilson"}}
    bars = {"lower_bound": 0.985, "max_loss": 0.01, "baseline": 0.99652}
    file = io.StringIO()
    shown = RunSummary(evaluation(metric("SparseTopKCategoricalAccuracy", 0.99651, **bars) | interval), None)
    run_summary.show_run_summary(Console(file=file, width=80), shown)
    assert all(text in file.getvalue() for text in ("0.9965", "(0.987\N{EN DASH}0.999)", "passed"))


def test_a_missed_bar_is_shown_and_the_model_is_not_pushed() -> None:
    result = RunSummary(evaluation(metric("AUC", 0.6, passed=False, lower_bound=0.9), blessed=False), None)
    assert not result.good_enough
    assert cells(result)[-2:] == [
        ["AUC", "0.6000", "≥ 0.9", "missed"],
        ["Not pushed: the model did not reach every bar."],
    ]


def test_an_undecided_model_is_not_called_refused_and_the_reason_is_shown() -> None:
    undecided = metric("AUC", 0.94, passed=False, baseline=0.95, max_loss=0.01) | {"undecided": True}
    decided = {"undecided": True, "reason": "Undecided: too few rows.", "not_judged": ["Not judged: hour=3 (2)."]}
    part = slice_of("hour=1", 90, AUC=0.5) | {"missed": ["AUC"]}
    result = RunSummary(evaluation(undecided, blessed=False, slices=(part,)).model_copy(update=decided), None)
    assert (result.good_enough, result.evaluation and result.evaluation.missed) == (False, [])
    assert cells(result)[2:] == [
        ["AUC", "0.9400", "loses ≤ 0.01", "0.9500", "cannot tell"],
        ["Slices"],
        ["Slice", "Rows", "AUC"],
        ["hour=1", "90", "0.5000 missed"],
        ["Verdict", "Undecided: too few rows."],
        ["Not judged: hour=3 (2)."],
        ["Not pushed: too few rows to tell whether the model is good enough."],
    ]


def test_a_blessed_model_that_no_pusher_saw_is_not_called_refused() -> None:
    assert cells(RunSummary(evaluation(metric("AUC", 0.95, lower_bound=0.9)), None))[-1][0] == "AUC"


def test_a_metric_without_a_value() -> None:
    result = RunSummary(evaluation(metric("AUC", None, passed=False, lower_bound=0.9), blessed=False), None)  # type: ignore[arg-type]
    assert ["AUC", "-", "≥ 0.9", "missed"] in cells(result)


def test_a_model_that_is_served_otherwise_is_not_pushed_and_says_where(tmp_path: Path) -> None:
    problems = [f"row {row} over REST: output score is 1, expected 2" for row in range(5)]
    infra = InfraReport(blessed=False, problems=problems)
    result = RunSummary(evaluation(metric("AUC", 0.95)), None, infra=infra, infra_report=tmp_path / "report.json")
    assert (result.reached_bars, result.good_enough) == (True, False)
    assert cells(result)[-5:] == [
        ["Not pushed: the model server does not serve what was evaluated."],
        *[[problem] for problem in problems[:3]],
        ["Report", str(tmp_path / "report.json")],
    ]


def test_a_model_that_missed_its_bars_was_not_tried() -> None:
    infra = InfraReport(blessed=False, skipped=NOT_BLESSED)
    result = RunSummary(evaluation(metric("AUC", 0.6, passed=False), blessed=False), None, infra=infra)
    assert not result.good_enough
    assert cells(result)[-1] == ["Not pushed: the model did not reach every bar."]


def test_a_good_model_that_is_not_served_says_why_and_is_good_enough() -> None:
    result = RunSummary(evaluation(metric("AUC", 0.95)), None, not_served="Not served: version 3 is.", restorable=2)
    assert result.good_enough
    assert cells(result)[-1] == ["Not served: version 3 is."]


def test_slices_are_shown_as_they_are_written() -> None:
    slices = (slice_of("company=[red] Blue", 3600, AUC=0.9, Recall=None), slice_of("company=", 40, AUC=0.5, Recall=1.0))
    result = RunSummary(evaluation(metric("AUC", 0.95), slices=slices), None)
    assert cells(result)[-4:] == [
        ["Slices"],
        ["Slice", "Rows", "AUC", "Recall"],
        ["company=[red] Blue", "3,600", "0.9000", "-"],
        ["company=", "40", "0.5000", "1.0000"],
    ]


def test_slices_are_shown_with_their_intervals() -> None:
    interval = {"low": 0.8123, "high": 0.9537, "level": 0.95, "method": "bootstrap"}
    blue = {**slice_of("company=Blue", 3600, AUC=0.9, MAE=12.5), "intervals": {"AUC": interval, "MAE": None}}
    red = {**slice_of("company=Red", 40, AUC=None, MAE=2.5), "intervals": {"AUC": None}}
    file = io.StringIO()
    run_summary.show_run_summary(
        Console(file=file, width=120), RunSummary(evaluation(metric("AUC", 0.95), slices=(blue, red)), None)
    )
    assert [line.rstrip() for line in file.getvalue().rstrip().splitlines()[-3:]] == [
        "Slice          Rows  AUC                   MAE",
        "company=Blue  3,600  0.9000 (0.812\N{EN DASH}0.954)  12.5000",
        "company=Red      40       -                 2.5000",
    ]


def test_what_has_too_few_rows_for_an_interval_says_so() -> None:
    reason = "too few positives to tell (12 of 600 rows; this area takes about 60)"
    blue = {**slice_of("company=Blue", 600, AUC=0.95), "intervals": {"AUC": None}, "no_intervals": {"AUC": reason}}
    result = RunSummary(evaluation(metric("AUC", 0.95) | {"no_interval": reason}, slices=(blue,)), None)
    assert ["AUC", "0.9500", "too few positives to tell"] in cells(result)
    assert cells(result)[-1] == ["company=Blue", "600", "0.9500 too few positives to tell"]


def test_a_narrow_terminal_cuts_no_number_of_a_slice() -> None:
    interval = {"low": 0.8123, "high": 0.9537, "level": 0.95, "method": "bootstrap"}
    names = ("AUC", "BinaryAccuracy", "Calibration")
    card = slice_of("payment_type=Credit Card", 3600, **dict.fromkeys(names, 0.9))
    summary = RunSummary(evaluation(slices=({**card, "intervals": dict.fromkeys(names, interval)},)), None)
    file = io.StringIO()
    run_summary.show_run_summary(Console(file=file, width=80), summary)
    assert [line.split() for line in file.getvalue().rstrip().splitlines()[-2:]] == [
        ["payment_type=Credit", "Card", "3,600", "0.9000", "0.9000", "0.9000"],
        ["(0.812\N{EN DASH}0.954)"] * 3,
    ]


def test_only_the_largest_slices_are_shown() -> None:
    slices = tuple(slice_of(f"hour={hour}", 100 - hour, AUC=0.5) for hour in range(15))
    lines = cells(RunSummary(evaluation(metric("AUC", 0.95), slices=slices), None))
    assert lines[-2][0] == "hour=11"
    assert lines[-1] == ["… and 3 smaller slices"]


def test_a_long_path_is_not_broken() -> None:
    path = Path("/serving") / ("a" * 200)
    assert cells(RunSummary(evaluation(metric("AUC", 0.95)), path))[-1] == ["Pushed to", str(path)]


MADE = {
    "quantization": "int8",
    "blessed": True,
    "refused": None,
    "size_bytes": 326_829,
    "variables_bytes": 1_274_440,
    "latency_ms": 0.00351,
    "accuracy": 0.93199,
    "saved_model_accuracy": 0.92947,
}
MEASURED = (
    "int8, 327 kB, 3.9 x smaller than the SavedModel's variables; accuracy 0.9320 (SavedModel 0.9295); 0.00351 ms a row"
)
UNBLESSED = {"quantization": "int8", "blessed": False, "refused": "the Evaluator did not bless the model"}
REFUSED = {**MADE, "blessed": False, "refused": "its accuracy is low", "size_bytes": 1_274_440}
TFLITE_LINES = [
    (MADE, MEASURED),
    (REFUSED, f"not pushed: its accuracy is low; {MEASURED}".replace("327 kB, 3.9 x", "1.3 MB, 1.0 x")),
    (UNBLESSED, "not made: the Evaluator did not bless the model."),
]


@pytest.mark.parametrize(("report", "line"), TFLITE_LINES, ids=["pushed", "refused", "not made"])
def test_one_line_about_the_tf_lite_model(report: dict[str, Any], line: str) -> None:
    result = RunSummary(
        evaluation(metric("AUC", 0.95)), Path("/serving/small/17"), tflite=TFLiteReport.model_validate(report)
    )
    assert cells(result)[-2:] == [["TF Lite", line], ["Pushed to", "/serving/small/17"]]


@pytest.fixture
def finished(places: Environment, builder: StoreBuilder, tmp_path: Path) -> StoreBuilder:
    builder.run("one")
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "summary.json").write_text(evaluation(metric("AUC", 0.95)).model_dump_json())
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", tmp_path / "evaluation")})
    return builder


def summary_of_run(places: Environment) -> RunSummary:
    store = Store.open_sqlite(places.metadata_path)
    assert store is not None
    return run_summary.read_run_summary(store, store.node_runs("small", "one"))


def test_the_result_is_read_from_the_artifacts(places: Environment, finished: StoreBuilder) -> None:
    pushed = finished.artifact("PushedModel", pushed=1, pushed_destination="/serving/small/17")
    finished.node("Pusher", outputs={"pushed_model": pushed})
    assert summary_of_run(places) == RunSummary(evaluation(metric("AUC", 0.95)), Path("/serving/small/17"))


def test_a_model_that_was_not_blessed_has_no_destination(places: Environment, finished: StoreBuilder) -> None:
    finished.node("Pusher", outputs={"pushed_model": finished.artifact("PushedModel", pushed=0)})
    assert summary_of_run(places).pushed_to is None


def test_the_report_of_the_infra_validator_is_read(places: Environment, finished: StoreBuilder, tmp_path: Path) -> None:
    assert summary_of_run(places).infra is None
    report = {"blessed": False, "skipped": None, "problems": ["row 0"]}
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "report.json").write_text(json.dumps(report))
    finished.node("InfraValidator", outputs={"blessing": finished.artifact("InfraBlessing", tmp_path / "infra")})
    assert (summary_of_run(places).infra, summary_of_run(places).infra_report) == (
        InfraReport.model_validate(report),
        tmp_path / "infra" / "report.json",
    )


def test_the_report_on_the_tf_lite_model_is_read(places: Environment, finished: StoreBuilder, tmp_path: Path) -> None:
    assert summary_of_run(places).tflite is None
    (tmp_path / "tflite").mkdir()
    (tmp_path / "tflite" / "report.json").write_text(json.dumps(MADE))
    finished.node("TFLite", outputs={"tflite_model": finished.artifact("TFLiteModel", tmp_path / "tflite")})
    assert summary_of_run(places).tflite == TFLiteReport.model_validate(MADE)


def test_a_partial_run_may_have_neither(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer")
    assert summary_of_run(places) == RunSummary(None, None)


def test_what_ingest_says_about_the_data_is_a_note(places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    examples = builder.artifact("Examples", notes=json.dumps(["column mass: 341 numbers, 2 'NA': read as text."]))
    builder.node("ExampleGen", outputs={"examples": examples})
    notes = summary_of_run(places).notes
    assert notes == ("Data       column mass: 341 numbers, 2 'NA': read as text.",)
