"""The columnar evaluation against TFMA on Beam: the same rows, models and configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from sklearn.metrics import roc_auc_score

from components.engine import NotColumnar
from components.evaluation import areas, component, recording, sample, tfma_run
from components.evaluation.columnar import batches, run, totals
from components.evaluation.levels import LevelsBySlice
from components.evaluation.metric_names import CLASSES, METRICS, NUMBERS, TWO
from components.evaluation.predictions import PredictionsTable, rows_of_slice
from components.evaluation.recording import Source
from components.evaluation.settings import EvaluatorSettings
from contracts.errors import DataError

pytestmark = [
    # TFMA takes arrays of one value for numbers, and divides by zero at thresholds that no row reaches.
    pytest.mark.filterwarnings(
        "ignore:Conversion of an array with ndim > 0:DeprecationWarning",
        "ignore:.* encountered in (divide|log|multiply|scalar divide|scalar multiply):RuntimeWarning",
    ),
]

ROWS = 300
NO_MEANS = ("BinaryIoU",)
"""What only TFMA on Beam computes."""

DIVIDES_BY_ZERO = ("PrevalenceThreshold",)
"""What TFMA cannot compute in a slice without errors."""

Value = Any


def example(features: Mapping[str, list[Value]]) -> bytes:
    """A serialized row."""
    row = tf.train.Example()
    for name, values in features.items():
        kind = row.features.feature[name]
        if values and isinstance(values[0], bytes):
            kind.bytes_list.value.extend(values)
        elif values and isinstance(values[0], float):
            kind.float_list.value.extend(values)
        elif values:
            kind.int64_list.value.extend(values)
    return row.SerializeToString()


def rows_of(labels: Any, scores: Any) -> list[bytes]:
    """Rows with a word, an hour that some lack, tags of which some have several or none, and a weight."""
    random = np.random.default_rng(3)
    rows = []
    for label, of_row in zip(labels.tolist(), scores.tolist(), strict=True):
        tags = random.choice([b"a", b"b", b"c"], random.integers(0, 4)).tolist()
        hours = [int(random.integers(3))] if random.random() < 0.8 else []
        rows.append(
            example(
                {
                    "label": [label],
                    "scores": of_row,
                    "word": [[b"caf\xc3\xa9", b"tea"][random.integers(2)]],
                    "hour": hours,
                    "tags": tags,
                    "half": [float(random.integers(2)) / 2],
                    "weight": [float(random.integers(1, 4))],
                }
            )
        )
    return rows


class Served(tf.Module):
    """A model whose predictions stand in the rows, times a factor."""

    def __init__(self, label_dtype: tf.DType, width: int, factor: float, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self._spec = {
            "label": tf.io.FixedLenFeature([], label_dtype),
            "scores": tf.io.FixedLenFeature([width], tf.float32),
        }
        self._factor = tf.Variable(factor)
        self._outputs = outputs

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, self._spec)
        return {name: parsed["scores"] * self._factor for name in self._outputs}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_label(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"of_row": tf.io.parse_example(examples, self._spec)["label"]}

    def save(self, folder: Path) -> str:
        """Exports it."""
        signatures = {"serving_default": self.serve, "transform_label": self.transform_label}
        tf.saved_model.save(self, str(folder), signatures)
        return str(folder)


@dataclass(frozen=True)
class Case:
    """Rows and two models."""

    files: list[str]
    models: dict[bool, str]


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    """Makes `Case(labels, scores)`."""

    def make(labels: Any, scores: Any, outputs: tuple[str, ...] = ("scores",)) -> Case:
        rows = rows_of(labels, scores)
        files = []
        for number, part in enumerate((rows[:200], rows[200:])):
            files.append(str(tmp_path / f"rows-{number}.gz"))
            with tf.io.TFRecordWriter(files[-1], tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
                for row in part:
                    writer.write(row)
        dtype = tf.float32 if labels.dtype.kind == "f" else tf.int64
        models = {
            is_baseline: Served(dtype, scores.shape[1], factor, outputs).save(tmp_path / f"model-{factor}")
            for is_baseline, factor in ((False, 1.0), (True, 0.9))
        }
        return Case(files, models)

    return make


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, of unequal sizes."""
    monkeypatch.setattr(batches, "BATCH_ROWS", 64)


def config_of(settings: Mapping[str, Any], has_baseline: bool) -> Any:
    """A complete configuration."""
    config = component.eval_config("of_row", EvaluatorSettings.model_validate(settings))
    return tfma_run.complete_config(config, has_baseline)


def values_of(folder: Path) -> dict[tuple[Any, ...], Any]:
    """All of TFMA's values, by slice and metric."""
    return {
        (
            *(
                (key.column, key.WhichOneof("kind"), getattr(key, key.WhichOneof("kind")))
                for key in of_slice.slice_key.single_slice_keys
            ),
            metric.key.name,
            metric.key.model_name,
            metric.key.is_diff,
            metric.key.example_weighted.value,
        ): (metric.value.WhichOneof("type"), metric.value.double_value.value)
        for of_slice in tfma.load_metrics(str(folder))
        for metric in of_slice.metric_keys_and_values
    }


def check_agreement(case: Case, settings: Mapping[str, Any], tmp_path: Path, has_baseline: bool = True) -> int:
    """Both engines write the same; returns how many values."""
    config = config_of(settings, has_baseline)
    source = Source.of(config)
    for engine in ("beam", "columnar"):
        folder = tmp_path / engine
        folder.mkdir()
        recorders = [
            recording.table_recorder(str(folder / "predictions.npz"), source),
            sample.sample_recorder(str(folder / "sample"), 20, source.candidate),
        ]
        if engine == "columnar":
            levels = run.evaluate(case.files, case.models, config, recorders, str(folder))
        else:
            with beam.Pipeline() as pipeline:
                pattern = str(tmp_path / "rows-*")
                tfma_run.evaluate(pipeline, pattern, case.models, config, recorders, str(folder))
    theirs, ours = tmp_path / "beam", tmp_path / "columnar"
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir())
    expected, received = values_of(theirs), values_of(ours)
    assert set(received) == set(expected)
    for key, (kind, value) in expected.items():
        assert received[key] == (kind, pytest.approx(value, rel=1e-6, abs=1e-6, nan_ok=True)), key
    assert tfma.load_validation_result(str(ours)) == tfma.load_validation_result(str(theirs))
    assert tfma.load_eval_result(str(ours)).config == tfma.load_eval_result(str(theirs)).config
    tables = [recording.read_table(str(folder / "predictions.npz")) for folder in (ours, theirs)]
    for name in ("digests", "labels", "predictions", "slices"):
        np.testing.assert_array_equal(*(getattr(table, name) for table in tables), err_msg=name)
    assert tables[0].values == tables[1].values
    assert tables[0].worst[0].serialized == tables[1].worst[0].serialized
    assert (ours / "sample").read_bytes() == (theirs / "sample").read_bytes()
    check_levels(levels, tables[0], list(settings["metrics"]))
    return len(expected)


def check_levels(levels: LevelsBySlice, table: PredictionsTable, names: list[str]) -> None:
    """Areas from the counted scores are those of the rows, in each slice and of both models."""
    for (key, of_baseline), of_slice in levels.items():
        rows = table.take(rows_of_slice(table, key))
        rows = rows.take(rows.weights > 0) if rows.weights is not None else rows
        scores = rows.baseline if of_baseline else rows.predictions
        assert scores is not None
        weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
        expected = areas.roc(rows.labels == 1, scores[:, 0], weights).value
        assert areas.roc(*of_slice.rows()).value == pytest.approx(expected, abs=1e-12)
    models = 2 if table.baseline is not None else 1
    assert len(levels) == models * len({key for key, _ in levels})
    assert bool(levels) == ("AUC" in names)


def metrics_of(task: str) -> dict[str, Any]:
    """Every metric of a task that both engines know; the first with a bar."""
    left_out = {*NO_MEANS, *DIVIDES_BY_ZERO}
    names = [name for name, metric in METRICS.items() if task in metric.tasks and name not in left_out]
    return {name: {} for name in names} | {names[0]: {"lower_bound": 0.1, "max_loss": 0.5}}


def test_two_classes_with_slices_weights_and_a_baseline(case: Callable[..., Case], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    scores = random.uniform(0.01, 0.99, (ROWS, 1)).astype(np.float32)
    labels = (random.random(ROWS) < scores[:, 0]).astype(np.int64)
    settings = {
        "metrics": metrics_of(TWO),
        "slices": ["word", "hour", "tags", "half", ["tags", "hour"]],
        "example_weight": "weight",
    }
    # All rows, 2 words, 3 hours, 3 tags, 2 halves, 9 tags in an hour; each metric of two models and their difference.
    slices, metrics = 1 + 2 + 3 + 3 + 2 + 9, len(settings["metrics"]) + 1
    assert check_agreement(case(labels, scores), settings, tmp_path) == slices * metrics * 3


def test_several_classes(case: Callable[..., Case], tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    scores = random.dirichlet(np.full(8, 0.5), ROWS).astype(np.float32)
    labels = random.integers(0, 8, ROWS)
    settings = {"metrics": metrics_of(CLASSES), "slices": ["word"], "prediction_key": "chances"}
    found = check_agreement(case(labels, scores, ("chances", "others")), settings, tmp_path, has_baseline=False)
    assert found == 3 * (len(settings["metrics"]) + 1)


def test_numbers(case: Callable[..., Case], tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    scores = random.gamma(2, 10, (ROWS, 1)).astype(np.float32)
    labels = np.where(random.random(ROWS) < 0.05, 0, scores[:, 0] + random.normal(0, 3, ROWS)).astype(np.float32)
    settings = {"metrics": metrics_of(NUMBERS), "slices": ["hour"], "example_weight": "weight"}
    found = check_agreement(case(labels, np.abs(scores)), settings, tmp_path, has_baseline=False)
    assert found == 4 * (len(settings["metrics"]) + 1)


@pytest.mark.parametrize(
    ("metric", "scores", "labels", "why"),
    [
        ("BinaryIoU", [[0.5]], [1], "BinaryIoU is no mean over rows"),
        ("AUC", [[0.5, 0.5]], [1], "predictions of shape [1, 2] and type float32 are not numbers"),
        ("AUC", [[0.5]], [2], "a label is not between 0 and 1"),
        ("AUC", [[float("nan")]], [1], "a prediction is not a number"),
    ],
)
def test_what_is_left_to_beam(
    case: Callable[..., Case], tmp_path: Path, metric: str, scores: Any, labels: Any, why: str
) -> None:
    made = case(np.array(labels), np.array(scores, np.float32))
    config = config_of({"metrics": {metric: {"lower_bound": 0.1}}}, has_baseline=False)
    (tmp_path / "results").mkdir()
    with pytest.raises(NotColumnar) as caught:
        run.evaluate(made.files, made.models, config, [], str(tmp_path / "results"))
    assert str(caught.value) == why
    assert not list((tmp_path / "results").iterdir())


def test_a_reference_is_predicted_in_the_same_pass(case: Callable[..., Case], tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    made = case(random.integers(0, 2, ROWS), random.uniform(0.01, 0.99, (ROWS, 1)).astype(np.float32))
    config = config_of({"metrics": {"AUC": {"lower_bound": 0.1}}}, has_baseline=True)
    source = Source.of(config)
    paths = [str(tmp_path / name) for name in ("of_baseline", "of_reference")]
    recorders = [
        recording.table_recorder(path, replace(source, baseline=name))
        for path, name in zip(paths, ("baseline", "other"), strict=True)
    ]
    models = {False: made.models[False], True: made.models[False]}
    (tmp_path / "results").mkdir()
    run.evaluate(made.files, models, config, recorders, str(tmp_path / "results"), {"other": made.models[True]})
    of_baseline, of_reference = map(recording.read_table, paths)
    np.testing.assert_array_equal(of_reference.digests, of_baseline.digests)
    np.testing.assert_array_equal(of_baseline.baseline, of_baseline.predictions)
    np.testing.assert_allclose(of_reference.baseline, of_baseline.predictions * 0.9, rtol=1e-6)
    assert {key[-2] for key in values_of(tmp_path / "results")} == {True, False}
    assert {key[-3] for key in values_of(tmp_path / "results")} == {"candidate", "baseline"}


def test_neighbours_of_too_many_scores_count_as_equal(
    case: Callable[..., Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    scores = random.uniform(0.01, 0.99, (ROWS, 1)).astype(np.float32)
    labels = (random.random(ROWS) < scores[:, 0]).astype(np.int64)
    made, config = case(labels, scores), config_of({"metrics": {"AUC": {"lower_bound": 0.1}}}, has_baseline=False)
    monkeypatch.setattr(totals, "MAX_BINS", 20)
    monkeypatch.setattr(totals, "SCORES", replace(totals.SCORES, most_kept=100))
    (tmp_path / "results").mkdir()
    [levels] = run.evaluate(made.files, made.models, config, [], str(tmp_path / "results")).values()
    assert 50 < len(levels.scores) <= 100
    assert (levels.above.sum(), levels.below.sum()) == (labels.sum(), (1 - labels).sum())
    expected = roc_auc_score(labels, scores[:, 0])
    assert areas.roc(*levels.rows()).value == pytest.approx(expected, abs=0.01)


def test_a_row_without_a_weight_is_an_error(case: Callable[..., Case], tmp_path: Path) -> None:
    made = case(np.array([0, 1]), np.array([[0.5], [0.5]], np.float32))
    settings = {"metrics": {"AUC": {"lower_bound": 0.1}}, "example_weight": "nowhere"}
    with pytest.raises(DataError, match="no weight in 'nowhere' in 2 of 2 rows"):
        run.evaluate(made.files, made.models, config_of(settings, has_baseline=False), [], str(tmp_path))
