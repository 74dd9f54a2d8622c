"""A model is blessed only if the server answers what the Evaluator saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import infra_models
import numpy as np
import pytest
import tensorflow as tf
from pydantic import ValidationError
from tfx.types import standard_artifacts

from components.evaluation.predictions import table_to_bytes, unknown_table
from components.evaluation.settings import PREDICTIONS_FILE
from components.infra_validator import component
from components.infra_validator.sample import Batch
from components.infra_validator.settings import InfraValidatorSettings
from components.pusher import manifest
from contracts import model_card
from contracts.errors import DataError
from contracts.file_names import SAMPLE_FILE
from contracts.model_reports import InfraReport, Tolerance

ROWS = (-1.5, 0.0, 2.0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return infra_models.write(tmp_path_factory.mktemp("scorer") / "Format-Serving")


@pytest.fixture(scope="module")
def off_by_a_bit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return infra_models.write(tmp_path_factory.mktemp("scorer") / "Format-Serving", 3.001)


def tried(model: Path, batch: Batch, **settings: Any) -> InfraReport:
    return component.try_model("small", model, [batch], InfraValidatorSettings(**settings))


def test_a_model_that_answers_as_it_was_seen_is_blessed(saved: Path) -> None:
    report = tried(saved, infra_models.seen(ROWS))
    assert (report.blessed, report.problems, report.rows, report.precision) == (True, [], 3, "float32")
    # Without a card nothing is known of other signatures.
    assert [path.path for path in report.paths] == [
        "gRPC serving_default",
        "REST serving_default by rows",
        "REST serving_default by columns",
    ]
    assert {(path.difference, path.row, path.feature) for path in report.paths} == {(0.0, None, None)}


def test_a_model_that_is_off_by_a_bit_is_refused_with_row_output_and_values(off_by_a_bit: Path) -> None:
    report = tried(off_by_a_bit, infra_models.seen(ROWS))
    assert not report.blessed
    # Zero times anything is zero.
    assert report.problems == [
        f"{way}: score is 6.002 in row 12 of the split eval, expected 6 (2 of 3 rows differ)"
        for way in ("gRPC serving_default", "REST serving_default by rows", "REST serving_default by columns")
    ]
    [first, *_] = report.paths
    assert (first.output, first.row, first.differing, first.feature) == ("score", 12, 2, None)
    assert first.difference == pytest.approx(0.002, rel=1e-3)
    assert first.tolerance == Tolerance(1e-5, 1e-5)


def test_how_far_it_may_be_off_is_a_setting(off_by_a_bit: Path) -> None:
    assert tried(off_by_a_bit, infra_models.seen(ROWS), max_difference=1e-3).blessed


def test_an_output_that_is_not_answered_is_told(saved: Path) -> None:
    batch = infra_models.seen(ROWS)
    more = replace(batch, predictions={**batch.predictions, "more": np.zeros(3, np.float32)})
    report = tried(saved, more)
    assert report.paths[0].difference is None
    assert report.problems[0] == (
        "gRPC serving_default: more is nothing in row 10 of the split eval, expected 0 (3 of 3 rows differ)"
    )


def test_an_only_output_is_kept_without_a_name(tmp_path: Path) -> None:
    scorer = infra_models.Scorer(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def score(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": scorer(examples)["score"]}

    scorer.score = score
    tf.saved_model.save(scorer, str(tmp_path), signatures={"serving_default": score})
    batch = replace(infra_models.seen(ROWS), predictions={"": np.array(ROWS, np.float32) * 2})
    report = tried(tmp_path, batch)
    assert (report.blessed, {path.output for path in report.paths}) == (True, {"score"})


def test_a_broken_warm_up_is_refused(tmp_path: Path) -> None:
    model = infra_models.write(tmp_path / "model")
    (model / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(model / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        log = infra_models.log(infra_models.seen([1.0]))
        log.predict_log.request.model_spec.signature_name = "none"
        writer.write(log.SerializeToString())
    [problem] = component.try_model("small", model, [], InfraValidatorSettings()).problems
    assert problem.startswith("the model server refuses it: 1 model(s) did not become available: small: version 1")
    assert 'Serving signature key "none" not found.' in problem


def test_a_model_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    model = infra_models.write(tmp_path / "model")
    (model / "variables" / "variables.index").unlink()
    [problem] = tried(model, infra_models.seen(ROWS)).problems
    assert "is not a valid checkpoint" in problem


def test_a_request_that_is_refused_is_told(saved: Path) -> None:
    batch = replace(infra_models.seen(ROWS), rows=[infra_models.row(-1.5), b"\xff", infra_models.row(2.0)])
    problems = tried(saved, batch).problems
    assert [problem.partition(": ")[0] for problem in problems] == [
        "gRPC serving_default",
        "REST serving_default by rows",
        "REST serving_default by columns",
    ]
    assert problems[0].startswith("gRPC serving_default: the model server refuses a request: ")
    assert "parse" in problems[0].lower()


@pytest.mark.parametrize(
    ("told", "precision", "blessed"),
    [("mixed_bfloat16", "mixed_bfloat16", True), ("float64", "float32", False)],
)
def test_the_card_s_precision_allows_for_its_rounding(
    off_by_a_bit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, precision: str, blessed: bool
) -> None:
    model = tmp_path / "model"
    shutil.copytree(off_by_a_bit, model)
    (model / "assets.extra").mkdir(exist_ok=True)
    (model / model_card.CARD_FILE).touch()
    made = model_card.Card.model_construct(training={"precision": told}, signatures={})
    monkeypatch.setattr(component.model_card, "read_card", lambda _model: made)
    report = tried(model, infra_models.seen(ROWS))
    assert (report.precision, report.blessed) == (precision, blessed)


class Run:
    """The executor on artifacts; test_skew.py runs it on a model of ours."""

    def __init__(self, artifact: Callable[..., Any], saved: Path) -> None:
        self.blessing = artifact(standard_artifacts.InfraBlessing)
        kinds = {
            "model": standard_artifacts.Model,
            "model_blessing": standard_artifacts.ModelBlessing,
            "evaluation": standard_artifacts.ModelEvaluation,
            "examples": standard_artifacts.Examples,
            "transformed_examples": standard_artifacts.Examples,
            "transform_graph": standard_artifacts.TransformGraph,
        }
        self._inputs = {name: [artifact(kind)] for name, kind in kinds.items()}
        Path(self._inputs["model"][0].uri, "Format-Serving").symlink_to(saved)
        for name in ("examples", "transformed_examples"):
            [examples] = self._inputs[name]
            examples.split_names = '["eval"]'
            Path(examples.uri, "Split-eval").mkdir()
            with tf.io.TFRecordWriter(str(Path(examples.uri, "Split-eval", "rows.gz")), "GZIP") as writer:
                for x in ROWS:
                    writer.write(infra_models.row(x))

    def __call__(self, blessed: int, rows: int, kept: int) -> dict[str, Any]:
        """The report; `kept` rows are in the evaluation."""
        self._inputs["model_blessing"][0].set_int_custom_property("blessed", blessed)
        evaluation = Path(self._inputs["evaluation"][0].uri)
        with tf.io.TFRecordWriter(str(evaluation / SAMPLE_FILE)) as writer:
            if kept:
                writer.write(infra_models.log(infra_models.seen(ROWS[:kept])).SerializeToString())
        (evaluation / PREDICTIONS_FILE).write_bytes(table_to_bytes(unknown_table(len(ROWS))))
        properties = {"name": "small", "settings": json.dumps({"rows": rows})}
        component.InfraValidator.EXECUTOR_SPEC.executor_class().Do(
            self._inputs | {"tflite_model": []}, {"blessing": [self.blessing]}, properties
        )
        report: dict[str, Any] = json.loads(Path(self.blessing.uri, "report.json").read_text())
        return report


@pytest.fixture
def run(artifact: Callable[..., Any], saved: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    class NoFeatures:
        """A transform graph of no features."""

        def __init__(self, _uri: str) -> None: ...

        def transformed_feature_spec(self) -> dict[str, Any]:
            """Of none."""
            return {}

    monkeypatch.setattr(component.tft, "TFTransformOutput", NoFeatures)
    return Run(artifact, saved)


def test_a_good_model_is_blessed_and_its_files_are_noted(run: Run, saved: Path) -> None:
    report = run(blessed=1, rows=2, kept=3)
    assert (report["blessed"], report["rows"], len(report["paths"])) == (True, 2, 3)
    assert run.blessing.get_int_custom_property("blessed") == 1
    assert run.blessing.get_string_custom_property("model_digest") == manifest.digest_of_files(manifest.files_of(saved))
    assert Path(run.blessing.uri, "INFRA_BLESSED").exists()


def test_a_model_that_is_not_blessed_is_not_tried(run: Run) -> None:
    report = run(blessed=0, rows=2, kept=3)
    assert report == {"blessed": False, "skipped": "the Evaluator did not bless the model", "problems": []}
    assert run.blessing.get_int_custom_property("blessed") == 0
    assert Path(run.blessing.uri, "INFRA_NOT_BLESSED").exists()


def test_without_rows_the_model_is_only_loaded(run: Run) -> None:
    report = run(blessed=1, rows=0, kept=0)
    assert (report["blessed"], report["rows"], report["paths"]) == (True, 0, [])


def test_without_predictions_there_is_nothing_to_compare_with(run: Run) -> None:
    with pytest.raises(DataError, match="holds no predictions to compare the served ones with"):
        run(blessed=1, rows=2, kept=0)


def test_the_old_name_of_a_setting_is_told() -> None:
    with pytest.raises(ValidationError, match="requests is called rows now"):
        InfraValidatorSettings.model_validate({"requests": 20})
