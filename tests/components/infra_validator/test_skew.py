"""Serving that computes something else than training is refused, with the name of the feature."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skewed_recipe
import tensorflow as tf
import tensorflow_transform as tft
import tiny_recipe
from tfx.types import standard_artifacts
from tiny_artifacts import execute, new_artifact, new_examples, serialized

from components.artifacts import TFLiteModel
from components.evaluation import recording, sample
from components.evaluation.settings import PREDICTIONS_FILE
from components.infra_validator import component
from components.tflite import convert
from components.trainer import export, tensors
from components.transform import component as transform
from contracts.file_names import SAMPLE_FILE
from contracts.model_reports import InfraReport, PathDifference

EVAL = tiny_recipe.EVAL
MISSING_FARES = sum(row["fare"] is None for row in EVAL)
FEATURES = "gRPC transform_features"
SOURCE = recording.Source(None, None, "", ())
Model = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("skew")


@pytest.fixture(scope="module")
def raw(folder: Path) -> Any:
    return new_examples(folder, {"train": tiny_recipe.TRAIN, "eval": EVAL})


def transformed(folder: Path, raw: Any) -> tuple[Any, Any]:
    """Transform's graph and rows, in the environment as it is now: TFX loads the recipe anew."""
    schema, graph, rows = (
        new_artifact(folder, kind)
        for kind in (standard_artifacts.Schema, standard_artifacts.TransformGraph, standard_artifacts.Examples)
    )
    Path(schema.uri, "schema.pbtxt").write_text(tiny_recipe.SCHEMA)
    inputs, outputs = (
        {"examples": [raw], "schema": [schema]},
        {"transform_graph": [graph], "transformed_examples": [rows]},
    )
    execute(transform.Executor, inputs, outputs, {"preprocessing_fn": "skewed_recipe.preprocessing_fn"})
    return graph, rows


@pytest.fixture(scope="module")
def trained(folder: Path, raw: Any) -> tuple[Any, Any]:
    """The graph and the rows that the model was trained on."""
    return transformed(folder, raw)


class Node:
    """The InfraValidator on a model, evaluated as it serves."""

    def __init__(self, folder: Path, raw: Any, trained: tuple[Any, Any]) -> None:
        self._folder = folder
        self._data = {"examples": [raw], "transform_graph": [trained[0]], "transformed_examples": [trained[1]]}
        self.model = new_artifact(folder, standard_artifacts.Model)
        self.tflite: list[Any] = []

    @property
    def saved_model(self) -> Path:
        return Path(self.model.uri, "Format-Serving")

    def __call__(self, **settings: Any) -> InfraReport:
        evaluation, blessing, verdict = (
            new_artifact(self._folder, kind)
            for kind in (
                standard_artifacts.ModelEvaluation,
                standard_artifacts.InfraBlessing,
                standard_artifacts.ModelBlessing,
            )
        )
        verdict.set_int_custom_property("blessed", 1)
        self.evaluate(Path(evaluation.uri))
        inputs = self._data | {"model": [self.model], "evaluation": [evaluation], "model_blessing": [verdict]}
        inputs |= {"tflite_model": self.tflite}
        properties = {"name": "small", "settings": json.dumps(settings)}
        component.InfraValidator.EXECUTOR_SPEC.executor_class().Do(inputs, {"blessing": [blessing]}, properties)
        report = InfraReport.model_validate_json(Path(blessing.uri, "report.json").read_text())
        assert blessing.get_int_custom_property("blessed") == report.blessed
        return report

    def evaluate(self, evaluation: Path) -> None:
        """Leaves what an Evaluator leaves: predictions of the SavedModel in one batch."""
        rows = [serialized(row) for row in EVAL]
        loaded = tf.saved_model.load(str(self.saved_model))
        scores = loaded.signatures["serving_default"](examples=tf.constant(rows))["score"].numpy()
        labels = np.array([float(row["tips"] > 4) for row in EVAL])
        extracts = {"input": np.array(rows, object), "predictions": scores, "labels": labels}
        batch = recording.with_digests(extracts)
        for recorder in (
            sample.sample_recorder(str(evaluation / SAMPLE_FILE), 100, None),
            recording.table_recorder(str(evaluation / PREDICTIONS_FILE), SOURCE),
        ):
            recorder.write(recorder.read(batch))


@pytest.fixture
def node(folder: Path, raw: Any, trained: tuple[Any, Any]) -> Node:
    """The node, before a model is exported."""
    return Node(folder, raw, trained)


def save(graph: Any, node: Node) -> None:
    output = tft.TFTransformOutput(graph.uri)
    export.save(skewed_recipe.model(), output, skewed_recipe.LABEL, str(node.saved_model))


def of_path(report: InfraReport, path: str) -> PathDifference:
    return next(one for one in report.paths if one.path == path)


def test_serving_what_was_trained_is_blessed(node: Node, trained: tuple[Any, Any]) -> None:
    save(trained[0], node)
    report = node()
    assert (report.blessed, report.problems, report.rows) == (True, [], len(EVAL))
    assert [one.path for one in report.paths] == [
        FEATURES,
        "gRPC serving_default",
        "REST serving_default by rows",
        "REST serving_default by columns",
        "gRPC predict_transformed",
        "gRPC predict",
        "REST predict by rows",
        "REST predict by columns",
        "gRPC classify",
        "predictions.npz",
    ]
    for one in report.paths:
        assert one.rows == len(EVAL)
        assert one.difference is not None
        assert one.difference < 1e-6


def test_nothing_at_all_may_differ_where_nothing_is_allowed(node: Node, trained: tuple[Any, Any]) -> None:
    save(trained[0], node)
    report = node(max_difference=0)
    assert report.blessed == all(one.difference == 0 for one in report.paths)


@pytest.mark.parametrize(
    ("name", "value", "feature", "rows"),
    [
        # A missing fare is 0 whatever it is multiplied with.
        ("FACTOR", "1.01", "scaled", sum(bool(row["fare"]) for row in EVAL)),
        ("KIND", "float32", "precise", sum(bool(row["fare"]) for row in EVAL)),
        ("DEFAULT", "0", "filled", MISSING_FARES),
    ],
)
def test_features_that_are_traced_anew_and_differ_are_named(
    node: Node, folder: Path, raw: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str, feature: str, rows: int
) -> None:
    monkeypatch.setenv(name, value)
    save(transformed(folder, raw)[0], node)
    report = node()
    assert not report.blessed
    worst = of_path(report, FEATURES)
    assert (worst.feature, worst.differing, worst.rows) == (feature, rows, len(EVAL))
    assert (
        f"{FEATURES}: {feature} is {worst.got} in row {worst.row} of the split eval, expected {worst.expected}"
        in (report.problems[0])
    )
    # The transformed rows, which it was trained on, lead to other predictions than the raw ones; those agree.
    assert of_path(report, "gRPC predict_transformed").feature == feature
    assert {one.path for one in report.paths if one.differing} == {FEATURES, "gRPC predict_transformed"}


def test_the_row_is_that_of_the_split(node: Node, folder: Path, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTOR", "1.01")
    save(transformed(folder, raw)[0], node)
    worst = of_path(node(), FEATURES)
    assert worst.row is not None
    fare = EVAL[worst.row]["fare"]
    assert float(worst.got) == pytest.approx(fare / 7 * 1.01, rel=1e-5)
    assert float(worst.expected) == pytest.approx(fare / 7, rel=1e-5)
    assert worst.difference == pytest.approx(fare / 7 * 0.01, rel=1e-3)


def test_a_vocabulary_that_is_changed_after_training_is_named(node: Node, trained: tuple[Any, Any]) -> None:
    save(trained[0], node)
    vocabulary = node.saved_model / "assets" / "companies"
    lines = vocabulary.read_text().splitlines()
    vocabulary.write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    report = node()
    worst = of_path(report, FEATURES)
    assert (report.blessed, worst.feature, worst.difference) == (False, "company", None)
    swapped = [line for line in lines[:2]]
    assert worst.differing == sum((row["company"] or "none") in swapped for row in EVAL)
    assert sorted([worst.got, worst.expected]) == ["0", "1"]


def test_what_is_computed_over_a_batch_is_another_thing_in_a_row_alone(
    node: Node, folder: Path, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CENTERED", "")
    graph, rows = transformed(folder, raw)
    node = Node(folder, raw, (graph, rows))
    save(graph, node)
    report = node()
    assert not report.blessed
    assert of_path(report, FEATURES).feature == "centered"
    assert of_path(report, FEATURES).got == "0"


def test_a_signature_that_takes_a_missing_value_for_another_is_found_out(
    node: Node, trained: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def filled(raw: tensors.RawTensor, values: tf.Tensor) -> tensors.RawFeature:
        return to_feature(raw, tf.where(tf.math.is_nan(values), 3.0, values) if raw.name == "fare" else values)

    to_feature = tensors.RawTensor.to_feature
    monkeypatch.setattr(tensors.RawTensor, "to_feature", filled)
    save(trained[0], node)
    report = node()
    assert of_path(report, FEATURES).differing == 0
    ways = {"gRPC predict", "REST predict by rows", "REST predict by columns"}
    assert {one.path for one in report.paths if one.differing} == ways
    for way in ways:
        found = of_path(report, way)
        assert (found.feature, found.differing, found.output) == ("fare", MISSING_FARES, "score")
        assert found.row is not None
        assert EVAL[found.row]["fare"] is None


def test_a_tf_lite_model_of_other_weights_is_refused(node: Node, folder: Path, trained: tuple[Any, Any]) -> None:
    save(trained[0], node)
    made = new_artifact(folder, TFLiteModel)
    made.blessed = 1
    node.tflite = [made]

    def write(saved_model: Path) -> None:
        Path(made.uri, "model.tflite").write_bytes(convert.convert(saved_model, "none", list))

    write(node.saved_model)
    report = node()
    assert report.blessed
    assert of_path(report, "TF Lite").rows == len(EVAL)
    other = Node(folder, None, trained)
    model = skewed_recipe.model()
    kernel, bias = model.get_layer("score").get_weights()
    kernel[skewed_recipe.NUMBERS.index("filled")] += 5
    model.get_layer("score").set_weights([kernel, bias])
    export.save(model, tft.TFTransformOutput(trained[0].uri), skewed_recipe.LABEL, str(other.saved_model))
    write(other.saved_model)
    report = node(max_tflite_difference=0.05)
    assert {one.path for one in report.paths if one.differing} == {"TF Lite"}
    assert of_path(report, "TF Lite").feature == "filled"
    assert node(max_tflite_difference=1).blessed
