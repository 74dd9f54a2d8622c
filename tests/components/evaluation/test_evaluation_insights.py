"""What a report shows of an evaluation."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from evaluation_rows import kept_of, scores_like_taxi
from tiny_artifacts import serialized

from components.evaluation import insights, predictions
from contracts.evaluation import Insights

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
LABELS, SCORES = [1, 1, 0, 0, 0], [0.95, 0.3, 0.62, 0.1, 0.12]


def rows(count: int) -> list[bytes]:
    return [serialized({"number": number}) for number in range(count)]


def example(**features: Any) -> bytes:
    """A row whose features have several values, bytes or numbers."""
    made = tf.train.Example()
    for name, values in features.items():
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
        getattr(made.features.feature[name], kind).value.extend(values)
    return bytes(made.SerializeToString())


def described(labels: Any, outputs: Any, names: list[str] | None = None, **features: Any) -> dict[str, Any]:
    """What is written of them."""
    return written(insights.describe(kept_of(labels, outputs, rows=rows(len(labels)), **features), names))


def written(found: Insights) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(found.model_dump_json())
    return content


def test_a_binary_task() -> None:
    found = described(LABELS, [[score] for score in SCORES])
    assert (found["task"], found["rows"], found["rows_kept"], found["classes"]) == ("binary", 5, 5, ["0", "1"])
    assert found["confusion"] == {"labels": ["0", "1"], "counts": [[2, 1], [1, 1]], "threshold": 0.5}
    calibration = [[entry["low"], entry["high"], entry["rows"], entry["mean_label"]] for entry in found["calibration"]]
    assert calibration == [
        [pytest.approx(low), pytest.approx(low + 0.1), count, label]
        for low, count, label in [(0.1, 2, 0), (0.3, 1, 1), (0.6, 1, 0), (0.9, 1, 1)]
    ]
    assert found["calibration"][0]["mean_prediction"] == pytest.approx(0.11)
    assert found["calibration_error"] == pytest.approx((2 * 0.11 + 0.7 + 0.62 + 0.05) / 5)
    # From the highest score down: 1, 0, 1, 0, 0.
    third = pytest.approx(1 / 3)
    assert found["roc"] == [[0, 0], [0, 0.5], [third, 0.5], [third, 1], [pytest.approx(2 / 3), 1], [1, 1]]
    assert found["precision_recall"] == [[0.5, 1], [0.5, 0.5], [1, pytest.approx(2 / 3)], [1, 0.5], [1, 0.4]]


def test_scores_are_counted_for_each_class() -> None:
    zero, one = described(LABELS, SCORES)["scores"]
    assert (zero["label"], one["label"]) == ("0", "1")
    filled = {round(low, 2): count for low, _, count in zero["bins"] if count}
    assert filled == {0.1: 2, 0.6: 1}
    assert sum(count for _, _, count in one["bins"]) == 2
    assert (zero["bins"][0][0], zero["bins"][-1][1], len(zero["bins"])) == (0, 1, insights.SCORE_BINS)


def test_the_worst_rows_come_first() -> None:
    found = described(LABELS, SCORES, ["small", "big"])["worst"]
    assert [row["features"]["number"] for row in found] == [[1], [2], [4], [3], [0]]
    first = found[0]
    assert (first["label"], first["predicted"], first["prediction"]) == ("big", "small", 0.3)
    assert first["loss"] == pytest.approx(-np.log(0.3), rel=1e-5)


def test_of_many_rows_the_worst_twenty() -> None:
    made = scores_like_taxi(500)
    found = described(made.labels, made.scores)["worst"]
    losses = [row["loss"] for row in found]
    assert len(found) == predictions.WORST_ROWS
    assert losses == sorted(losses, reverse=True)
    wrong = np.abs(made.scores - made.labels)
    assert [row["features"]["number"][0] for row in found] == np.argsort(-wrong)[:20].tolist()


def test_several_classes() -> None:
    outputs = [[0.7, 0.2, 0.1], [0.1, 0.35, 0.55], [0.05, 0.05, 0.9], [0.3, 0.4, 0.3]]
    found = described([0, 1, 2, 1], outputs, ["ant", "bee", "cow"])
    assert (found["task"], found["classes"]) == ("multiclass", ["ant", "bee", "cow"])
    assert found["confusion"] == {
        "labels": ["ant", "bee", "cow"],
        "counts": [[1, 0, 0], [0, 1, 1], [0, 0, 1]],
        "threshold": None,
    }
    tops = [(entry["rows"], entry["mean_prediction"], entry["mean_label"]) for entry in found["calibration"]]
    assert tops == [(1, pytest.approx(top), right) for top, right in [(0.4, 1), (0.55, 0), (0.7, 1), (0.9, 1)]]
    assert found["calibration_error"] == pytest.approx((0.6 + 0.55 + 0.3 + 0.1) / 4)
    assert (found["scores"], found["roc"], found["precision_recall"]) == (None, None, None)
    first = found["worst"][0]
    assert (first["label"], first["predicted"], first["features"]) == ("bee", "cow", {"number": [1]})
    assert first["prediction"] == [0.1, 0.35, 0.55]
    assert first["loss"] == pytest.approx(-np.log(0.35), rel=1e-5)


def test_classes_without_a_row_are_known() -> None:
    def unseen(*labels: int, dropped: int = 0) -> list[str]:
        table = kept_of(list(labels), [[0.7, 0.2, 0.1]] * len(labels), rows=rows(len(labels)))
        every_row = dataclasses.replace(table, rows=table.rows + dropped)
        return insights.unseen_classes(insights.describe(every_row, ["ant", "bee", "cow"]))

    assert unseen(0, 2) == ["bee"]
    assert unseen(0, 1, 2) == []
    # A class may be among the rows that were not kept.
    assert unseen(0, 2, dropped=1) == []


def test_names_that_are_not_those_of_the_classes_are_not_taken() -> None:
    assert described([0, 1], [[0.5, 0.5], [0.1, 0.9]], ["ant"])["classes"] == ["0", "1"]


def test_logits_are_ordered_as_their_softmax_is() -> None:
    found = described([0, 1], [[2.0, 1.0, -5.0], [3.0, 0.0, 0.0]])
    assert found["worst"][0]["loss"] == pytest.approx(np.log(np.exp(3) + 2), rel=1e-5)
    assert found["worst"][0]["predicted"] == "0"


def test_very_many_classes_have_no_confusion_matrix() -> None:
    labels = np.arange(101)
    assert described(labels, np.eye(101))["confusion"] is None


def test_a_regression() -> None:
    labels = np.arange(40) * 1.0
    found = described(labels, (labels * 2)[:, None])
    assert (found["task"], found["classes"], found["confusion"]) == ("regression", None, None)
    assert (found["calibration_error"], found["scores"], found["roc"]) == (None, None, None)
    assert [entry["rows"] for entry in found["calibration"]] == [4] * 10
    assert found["calibration"][0] == {
        "low": 0.0, "high": pytest.approx(7.8), "rows": 4, "mean_prediction": 3.0, "mean_label": 1.5,
        "weight": 4.0,
    }  # fmt: skip
    first = found["worst"][0]
    assert (first["loss"], first["label"], first["prediction"], first["predicted"]) == (39.0**2, 39.0, 78.0, None)


def test_weights_count_in_calibration_and_curves() -> None:
    labels, scores, weights = [1, 0, 0, 1, 1], [0.62, 0.66, 0.61, 0.25, 0.21], [3.0, 1.0, 0.0, 1.0, 1.0]
    found = written(insights.describe(kept_of(labels, scores, weights=weights, rows=rows(5))))
    low, high = found["calibration"]
    assert (low["rows"], low["weight"], low["mean_prediction"]) == (2, 2.0, pytest.approx(0.23))
    assert (high["rows"], high["weight"]) == (3, 4.0)
    assert (high["mean_prediction"], high["mean_label"]) == (pytest.approx(0.63), 0.75)
    assert found["calibration_error"] == pytest.approx((2 * 0.77 + 4 * 0.12) / 6)
    # From the highest score down: one of weight 1 wrongly, 3 of the 5 rightly, then 1 and 1.
    assert found["roc"] == [[0, 0], [1, 0], [1, 0.6], [1, 0.8], [1, 1]]
    assert found["precision_recall"][1] == [0.6, 0.75]
    assert found["confusion"]["counts"] == [[0, 2], [2, 1]]


def test_predictions_that_are_all_the_same() -> None:
    [only] = described([1.0, 2.0, 4.0], [3.0, 3.0, 3.0])["calibration"]
    assert (only["low"], only["high"], only["rows"]) == (3, 3, 3)
    assert described([1, 1], [1.0, 1.0])["roc"] is None
    assert described([0, 0], [1.0, 0.0])["precision_recall"] is None


def test_what_is_of_no_known_kind_says_so() -> None:
    found = written(insights.describe(predictions.unknown_table(7)))
    assert (found["task"], found["rows"], found["rows_kept"], found["worst"]) == ("other", 7, 0, [])
    assert [value for name, value in found.items() if name not in {"task", "rows", "rows_kept", "worst"}] == [
        None, [], None, None, None, None, None,
    ]  # fmt: skip


def test_a_prediction_that_is_no_number_is_shown_and_not_counted() -> None:
    found = described([1, 0, 1], [0.9, np.nan, 0.2])
    assert (found["rows"], found["rows_kept"]) == (3, 2)
    first = found["worst"][0]
    assert (first["loss"], first["prediction"], first["predicted"], first["label"]) == (None, None, None, "0")


def test_a_curve_of_many_points_is_thinned_without_moving_it() -> None:
    made = scores_like_taxi(5000)
    binary, _ = predictions.score_rows(kept_of(made.labels, made.scores))
    points = insights.roc(binary)
    assert points is not None
    assert len(points) <= 200
    assert (points[0], points[-1]) == ((0, 0), (1, 1))
    x, y = np.array(points).T
    area = np.trapezoid(y, x) if hasattr(np, "trapezoid") else np.trapz(y, x)
    exact = np.array([made.scores[made.labels == 1][:, None] > made.scores[made.labels == 0][None]]).mean()
    assert area == pytest.approx(exact, abs=1e-3)
    assert len(insights.precision_recall(binary) or ()) <= 200


def test_features_of_every_kind() -> None:
    row = example(text=["Straße".encode()], counts=[1, 2], fares=[0.1, 2.5], image=[PNG], other=[b"\xff\x00", b""])
    assert insights.features(row) == {
        "text": ["Straße"],
        "counts": [1, 2],
        "fares": [0.1, 2.5],
        "image": [{"image": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}],
        "other": [{"bytes": 2}, ""],
    }
    assert insights.features(serialized({"none": None, "empty": []})) == {"none": [], "empty": []}


def test_images_are_shown_where_they_are_small() -> None:
    [shown] = insights.features(example(image=[b"\xff\xd8\xff\xe0" + b"\x00" * 10]))["image"]
    assert shown["image"].startswith("data:image/jpeg;base64,/9j/4")
    large = PNG + b"\x00" * 64_000
    assert insights.features(example(image=[large])) == {"image": [{"bytes": len(large)}]}


def test_what_is_very_long_is_cut() -> None:
    found = insights.features(example(many=list(range(103)), text=[b"a" * 3000], control=[b"a\x00b"]))
    assert found["many"][-2:] == [99, {"more": 3}]
    assert found["text"] == ["a" * 2000 + "…"]
    assert found["control"] == [{"bytes": 3}]


def test_a_number_that_json_does_not_have_is_text() -> None:
    assert insights.features(example(fare=[float("nan")])) == {"fare": ["nan"]}
