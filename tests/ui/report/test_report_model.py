"""What a run's page shows about the model: training, evaluation, slices, worst examples, card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_scene import PNG, Page, Scene

from contracts import history
from contracts.content import ContentError
from metadata.records import ArtifactRecord

Report = Callable[..., Page]


def changed(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return json.loads(json.dumps(value)) | changes


def test_the_training_is_reported_by_what_stopped_it(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    loss, auc, rate = page.charts("training")
    assert loss["series"] == [
        {"name": "training", "points": [[1, 0.9], [2, 0.5], [3, 0.3]], "dashed": False, "group": None},
        {"name": "validation", "points": [[1, 0.8], [2, 0.4], [3, None]], "dashed": True, "group": None},
    ]
    assert (auc["title"], rate["title"]) == ("auc", "learning rate")
    assert rate["series"][0]["points"] == [[1, 0.1], [2, 0.1], [3, 0.01]]
    assert (
        "3 epochs of 9: it ended early, for val_auc no longer improved; val_auc was best in epoch 2. "
        "The exported model is that of the best epoch."
    ) in page.text("training")
    assert page.table("Metrics of the training")[1:] == [
        ["loss", "0.3000", "-", "0.5000", "0.4000"],
        ["auc", "0.8000", "0.6000", "0.7000", "0.6500"],
    ]


@pytest.mark.parametrize(
    ("callbacks", "best", "exported"),
    [
        ({}, "val_loss was best in epoch 2", "that of the last epoch"),
        ({"early_stopping": {"monitor": "loss", "restore_best_weights": False}}, "loss was best in epoch 3", "last"),
        ({"best_checkpoint": {"monitor": "loss", "mode": "max"}}, "loss was best in epoch 1", "that of the best epoch"),
    ],
)
def test_the_best_epoch_is_that_of_the_watched_metric(
    scene: Scene, report: Report, callbacks: dict[str, Any], best: str, exported: str
) -> None:
    card = scene.files["model"]["Format-Serving/assets.extra/card.json"]
    recorded = {"settings": {"callbacks": callbacks}, "epochs": 3}
    scene.files["model"]["Format-Serving/assets.extra/card.json"] = changed(card, training=recorded)
    scene.run("small-1")
    text = report("small-1").text("training")
    assert best in text
    assert exported in text
    assert "ended early" not in text


def model_run(folder: Path) -> ArtifactRecord:
    return ArtifactRecord(id=1, type="ModelRun", uri=str(folder), state="LIVE", properties={}, created=0)


def test_epochs_are_counted_over_the_phases_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("epoch,loss\n0,3\n1,2\n0,1\n")
    assert history.read_history(model_run(tmp_path)).columns == {"loss": [3.0, 2.0, 1.0]}


def test_a_training_without_an_epoch_has_no_best_one(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("epoch,val_loss\n")
    empty = history.read_history(model_run(tmp_path))
    assert (empty.epochs, empty.best("val_loss"), empty.learning_rate) == (0, None, None)
    (tmp_path / "history.csv").write_text("")
    with pytest.raises(ContentError, match="expected a heading"):
        history.read_history(model_run(tmp_path))


def test_metrics_stand_against_their_bars_with_intervals_and_baseline(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    assert page.table("Metrics against their bars") == [
        ["Metric", "Value", "Interval", "Bar", "Baseline", "Difference", "Verdict"],
        [
            "AUC",
            "0.9464",
            "0.9402 to 0.9521",
            "≥ 0.9, loses ≤ 0.01",
            "0.9301",
            "0.0163 (0.0101 to 0.0225)",
            "passed",
        ],
    ]
    text = page.text("evaluation")
    assert "Intervals are at 95.0% confidence: AUC by bootstrap." in text
    assert "4,000 rows of the 4,966" in text
    assert "over the bins of the calibration: 0.0312" in text


def test_where_there_is_no_interval_the_reason_stands(scene: Scene, report: Report) -> None:
    reason = "too few positives to tell (12 of 600 rows; this area takes about 60)"
    unsure = {"interval": None, "difference": None, "no_interval": reason}
    scene.run("small-1")
    path = scene.root / "small-1" / "evaluation" / "summary.json"
    summary = json.loads(path.read_text())
    summary["metrics"][0] |= unsure
    summary["slices"] = [{**summary["slices"][1], "no_intervals": {"AUC": reason}}]
    path.write_text(json.dumps(summary))
    page = report("small-1")
    assert page.table("Metrics against their bars")[1][2] == reason
    assert page.table("Slices")[1][3] == reason


def test_calibration_scores_and_curves_are_drawn(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    charts = {chart["title"]: chart for chart in report("small-1").charts("evaluation")}
    assert list(charts) == ["Calibration", "Predictions by label", "ROC", "Precision and recall"]
    assert charts["Calibration"]["series"][0]["points"] == [[0.2, 0.25]]
    assert (charts["Calibration"]["diagonal"], charts["ROC"]["diagonal"]) == (True, True)
    assert charts["Predictions by label"]["series"] == [{"name": "label 1", "bins": [[0.0, 0.5, 250], [0.5, 1.0, 750]]}]
    assert charts["ROC"]["series"][0]["points"] == [[0.0, 0.0], [0.1, 0.9], [1.0, 1.0]]
    assert charts["Precision and recall"]["x"] == "recall"


def test_the_confusion_matrix_has_truth_in_rows_and_shades_of_shares(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    assert page.table("Confusion") == [
        ["", "0", "1", "Rows"],
        ["0", "2,900", "100", "3,000"],
        ["1", "250", "750", "1,000"],
    ]
    heat = [float(cell["data-heat"]) for cell in page.section("evaluation").select("td[data-heat]")]
    assert heat == [0.967, 0.033, 0.25, 0.75]
    assert "from a score of 0.5 on" in page.text("evaluation")


def test_an_evaluation_of_an_older_run_shows_what_it_has(scene: Scene, report: Report) -> None:
    bar = {"lower_bound": 0.97, "upper_bound": None, "max_loss": None, "direction": "higher_is_better"}
    plain = [
        {"name": "AUC", "value": 0.95, "baseline": None, "passed": False, "bar": bar},
        {"name": "Recall", "value": None, "baseline": None, "passed": True, "bar": {}},
    ]
    slices = [{"slice": "type=Cash", "rows": 40, "metrics": {"AUC": 0.5, "Recall": None}}]
    old = {"blessed": False, "rows": 4966, "metrics": plain, "slices": slices}
    scene.files["evaluation"] = {"summary.json": old}
    scene.run("small-1", pushed={"pushed": 0, "not_pushed_reason": "the Evaluator did not bless the model"})
    page = report("small-1")
    assert page.table("Metrics against their bars") == [
        ["Metric", "Value", "Bar", "Verdict"],
        ["AUC", "0.9500", "≥ 0.97", "missed"],
        ["Recall", "-", "", ""],
    ]
    assert page.charts("evaluation") == []
    assert page.table("Slices")[0] == ["Slice", "Rows", "AUC", "Recall"]
    assert "worst-examples" not in page.sections
    assert "The model was not pushed: AUC is 0.9500, expected ≥ 0.97." in page.text("summary")


def test_an_undecided_evaluation_says_why_and_names_its_slices(scene: Scene, report: Report) -> None:
    difference = {"value": -0.005, "low": -0.015, "high": 0.005}
    auc = {
        "name": "AUC",
        "value": 0.945,
        "baseline": 0.95,
        "passed": False,
        "undecided": True,
        "bar": {"max_loss": 0.01},
    }
    scene.files["evaluation"]["summary.json"] = {
        "blessed": False,
        "undecided": True,
        "reason": "Undecided: these 10 rows are too few to tell.",
        "not_judged": ["Not judged: hour=3 (2)."],
        "rows": 10,
        "metrics": [auc | {"difference": difference, "reference_difference": difference}],
        "slices": [
            {"slice": "hour=1", "rows": 6, "metrics": {"AUC": 0.5}, "missed": ["AUC"]},
            {"slice": "hour=2", "rows": 4, "metrics": {"AUC": 0.6}, "undecided": ["AUC"]},
        ],
    }
    scene.run("small-1", pushed={"pushed": 0, "not_pushed_reason": "the Evaluator did not bless the model"})
    page = report("small-1")
    assert "The model was not pushed. Undecided: these 10 rows are too few to tell." in page.text("summary")
    assert (
        "On 10 rows of the evaluation split. Undecided: these 10 rows are too few to tell. Not judged: hour=3 (2)."
        in (page.text("evaluation"))
    )
    apart = "-0.0050 (-0.0150 to 0.0050)"
    assert page.table("Metrics against their bars") == [
        ["Metric", "Value", "Bar", "Baseline", "Difference", "From the best served", "Verdict"],
        ["AUC", "0.9450", "loses ≤ 0.01", "0.9500", apart, apart, "cannot tell"],
    ]
    assert [row[-1] for row in page.table("Slices")] == ["Bars", "missed AUC", "cannot tell AUC"]


def test_slices_are_a_sortable_table_and_a_plot_with_their_rows(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    [chart] = page.charts("slices")
    assert chart["rows"] == [
        {"label": "type=Cash", "rows": 3234, "value": 0.6387, "low": 0.5, "high": 0.75, "href": ""},
        {"label": "type=Card", "rows": 1701, "value": None, "low": None, "high": None, "href": ""},
    ]
    assert (chart["reference"], chart["reference_label"]) == (0.9464, "all 4,966 rows")
    assert page.table("Slices")[1:] == [
        ["type=Cash", "3,234", "0.6387", "0.5000 to 0.7500"],
        ["type=Card", "1,701", "-", ""],
    ]
    table = page.section("slices").select_one("table")
    assert table["class"] == ["sortable"]
    assert [cell["data-value"] for cell in table.select("td[data-value]")] == ["3234", "0.6387", "1701", ""]


def test_the_worst_examples_show_raw_features_and_images(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    assert page.table("Worst examples") == [
        ["Loss", "Label", "Prediction", "Predicted", "fare", "company", "photo", "raw"],
        ["6.5000", "1", "0.0015", "0", "12.5", "Blue", "", "2,048 bytes"],
    ]
    [image] = page.section("worst-examples").find_all("img")
    assert (image["src"], bool(image["alt"])) == (PNG, True)


def test_long_features_are_cut(scene: Scene, report: Report) -> None:
    row = {
        "loss": 1.0,
        "label": 0,
        "prediction": [0.25, 0.75],
        "features": {"text": ["x" * 300], "tags": list("abcdefghij")},
    }
    few = changed(scene.files["evaluation"]["insights.json"], worst=[row | {"predicted": None}])
    scene.files["evaluation"]["insights.json"] = few
    scene.run("small-1")
    cells = report("small-1").table("Worst examples")[1]
    assert cells == ["1.0000", "0", "0.25, 0.75", "", f"{'x' * 200}…", "a, b, c, d, e, f, g, h, … 2 more"]


def test_the_card_names_signatures_classes_and_weights(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1", recipe_text="# Tips\n<b>")
    assert page.table("Signature predict")[1:] == [
        ["input", "fare", "float32", "[?]", "fare", '"NaN"'],
        ["output", "probability", "float32", "[?, 1]", "", ""],
    ]
    text = page.text("model-card")
    for part in ("Model wide", "Predicts big", "Weights 12,126", "Classes no, yes", "auc 0.6500", "# Tips <b>"):
        assert part in text
