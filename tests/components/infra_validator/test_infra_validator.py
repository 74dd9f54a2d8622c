"""A model is blessed only if the server answers what the Evaluator saw."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import infra_models
import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components.infra_validator import component
from components.pusher import manifest
from contracts import model_card
from contracts.errors import DataError
from contracts.model_reports import AnswerDifference, Tolerance

ROWS = (-1.5, 0.0, 2.0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return infra_models.write(tmp_path_factory.mktemp("scorer") / "Format-Serving")


@pytest.fixture(scope="module")
def off_by_a_bit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return infra_models.write(tmp_path_factory.mktemp("scorer") / "Format-Serving", 3.001)


def test_a_model_that_answers_as_it_was_seen_is_blessed(saved: Path) -> None:
    report = component.try_model("small", saved, infra_models.seen(ROWS))
    assert (report.blessed, report.problems, report.requests) == (True, [], 3)
    assert (report.precision, report.tolerance) == ("float32", Tolerance(relative=1e-4, absolute=1e-5))


def test_a_model_that_is_off_by_a_bit_is_refused_with_row_output_and_values(off_by_a_bit: Path) -> None:
    report = component.try_model("small", off_by_a_bit, infra_models.seen(ROWS))
    assert not report.blessed
    # Zero times anything is zero.
    assert report.problems == [
        "row 0 over gRPC: output score is -4.5015, expected -4.5",
        "row 0 over REST: output score is -4.5015, expected -4.5",
        "row 2 over gRPC: output score is 6.002, expected 6",
        "row 2 over REST: output score is 6.002, expected 6",
    ]
    first = report.differences[0]
    assert first == AnswerDifference(row=0, api="gRPC", output="score", got="-4.5015", expected="-4.5")


def test_a_broken_warm_up_is_refused(tmp_path: Path) -> None:
    model = infra_models.write(tmp_path / "model")
    (model / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(model / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        log = infra_models.seen([1.0])[0]
        log.predict_log.request.model_spec.signature_name = "none"
        writer.write(log.SerializeToString())
    [problem] = component.try_model("small", model, []).problems
    assert problem.startswith("the model server refuses it: 1 model(s) did not become available: small: version 1")
    assert 'Serving signature key "none" not found.' in problem


def test_a_model_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    model = infra_models.write(tmp_path / "model")
    (model / "variables" / "variables.index").unlink()
    [problem] = component.try_model("small", model, infra_models.seen(ROWS)).problems
    assert "is not a valid checkpoint" in problem


def test_a_request_that_is_refused_is_told(saved: Path) -> None:
    [log] = infra_models.seen([1.0])
    log.predict_log.request.inputs["examples"].CopyFrom(tf.make_tensor_proto([b"\xff"]))
    [problem] = component.try_model("small", saved, [log]).problems
    assert problem.startswith("the model server refuses it: ")
    assert "parse" in problem.lower()


def test_reduced_precision_allows_for_its_rounding(off_by_a_bit: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(component, "_precision", lambda _model: "mixed_bfloat16")
    assert component.try_model("small", off_by_a_bit, infra_models.seen(ROWS)).blessed


def test_the_precision_is_that_of_the_card(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert component._precision(saved) == "float32"
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / model_card.CARD_FILE).touch()
    for told, expected in (("mixed_float16", "mixed_float16"), ("float64", "float32")):
        made = model_card.Card.model_construct(training={"precision": told})
        monkeypatch.setattr(component.model_card, "read_card", lambda _model, made=made: made)
        assert component._precision(tmp_path) == expected


class Run:
    """The executor on artifacts."""

    def __init__(self, artifact: Callable[..., Any], saved: Path) -> None:
        self.model = artifact(standard_artifacts.Model)
        Path(self.model.uri, "Format-Serving").symlink_to(saved)
        self.model_blessing = artifact(standard_artifacts.ModelBlessing)
        self.evaluation = artifact(standard_artifacts.ModelEvaluation)
        self.blessing = artifact(standard_artifacts.InfraBlessing)

    def __call__(self, blessed: int, requests: int, kept: int) -> dict[str, Any]:
        """The report; `kept` rows are in the evaluation."""
        self.model_blessing.set_int_custom_property("blessed", blessed)
        with tf.io.TFRecordWriter(str(Path(self.evaluation.uri, "sampled_predictions.tfrecord"))) as writer:
            for log in infra_models.seen(ROWS[:kept]):
                writer.write(log.SerializeToString())
        inputs = {
            "model": [self.model],
            "model_blessing": [self.model_blessing],
            "evaluation": [self.evaluation],
        }
        properties = {"name": "small", "settings": json.dumps({"requests": requests})}
        component.InfraValidator.EXECUTOR_SPEC.executor_class().Do(inputs, {"blessing": [self.blessing]}, properties)
        report: dict[str, Any] = json.loads(Path(self.blessing.uri, "report.json").read_text())
        return report


@pytest.fixture
def run(artifact: Callable[..., Any], saved: Path) -> Run:
    return Run(artifact, saved)


def test_a_good_model_is_blessed_and_its_files_are_noted(run: Run, saved: Path) -> None:
    report = run(blessed=1, requests=2, kept=3)
    assert (report["blessed"], report["requests"]) == (True, 2)
    assert run.blessing.get_int_custom_property("blessed") == 1
    assert run.blessing.get_string_custom_property("model_digest") == manifest.digest_of_files(manifest.files_of(saved))
    assert Path(run.blessing.uri, "INFRA_BLESSED").exists()


def test_a_model_that_is_not_blessed_is_not_tried(run: Run) -> None:
    report = run(blessed=0, requests=2, kept=3)
    assert report == {"blessed": False, "skipped": "the Evaluator did not bless the model", "problems": []}
    assert run.blessing.get_int_custom_property("blessed") == 0
    assert Path(run.blessing.uri, "INFRA_NOT_BLESSED").exists()


def test_without_requests_the_model_is_only_loaded(run: Run) -> None:
    assert run(blessed=1, requests=0, kept=0)["blessed"]


def test_without_predictions_there_is_nothing_to_compare_with(run: Run) -> None:
    with pytest.raises(DataError, match="holds no predictions to compare the served ones with"):
        run(blessed=1, requests=2, kept=0)
