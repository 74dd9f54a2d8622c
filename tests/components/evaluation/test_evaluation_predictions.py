"""What an evaluation keeps of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from evaluation_rows import batch, digest, kept_of
from tensorflow_model_analysis.api.types import VarLenTensorValue
from tensorflow_model_analysis.proto import config_pb2

from components.evaluation import predictions, recording
from components.evaluation.predictions import PredictionsTable
from components.evaluation.recording import Record, Source
from contracts.errors import DataError

ONE = Source(None, None, "", ())
COLORS = ["red", "blue", "", "red", "green", "blue", "red"]


def part(numbers: range, rows_a_value: int = 1) -> PredictionsTable:
    """Rows with these numbers; the label of each is its number's parity, the score a tenth of it."""
    colors = np.array([[COLORS[number % 7].encode()] for number in numbers], object)
    return kept_of(
        [number % 2 for number in numbers],
        [[number / 10] for number in numbers],
        features={"color": colors},
        rows=[f"row {number // rows_a_value}".encode() for number in numbers],
    )


def same(one: PredictionsTable, other: PredictionsTable) -> bool:
    return predictions.table_to_bytes(one) == predictions.table_to_bytes(other)


def test_a_batch() -> None:
    found = part(range(3))
    assert (found.rows, found.labels.tolist(), found.baseline) == (3, [0, 1, 0], None)
    assert found.predictions.dtype == np.float32
    assert found.predictions.tolist() == [[0], [np.float32(0.1)], [np.float32(0.2)]]
    assert found.digests.tolist() == [digest(b"row 0"), digest(b"row 1"), digest(b"row 2")]
    assert found.features == ("color",)
    assert [found.values[0][code] for code in found.slices[:, 0]] == [("red",), ("blue",), ("",)]
    assert [(row.serialized, row.error) for row in found.worst] == [
        (b"row 1", pytest.approx(0.9)),
        (b"row 2", pytest.approx(0.2)),
        (b"row 0", 0.0),
    ]


def test_parts_give_the_same_in_any_order() -> None:
    whole = predictions.in_order(part(range(60)))
    parts = [part(range(40, 60)), part(range(7)), part(range(7, 40))]
    assert same(predictions.in_order(predictions.merge_tables(parts)), whole)
    assert same(predictions.in_order(predictions.merge_tables([predictions.merge_tables(parts[1:]), parts[0]])), whole)
    assert whole.values == ((("",), ("blue",), ("green",), ("red",)),)
    colors = {int(row): whole.values[0][code][0] for row, code in zip(whole.digests, whole.slices[:, 0], strict=True)}
    assert colors[digest(b"row 4")] == "green"
    assert len(whole.worst) == predictions.WORST_ROWS
    assert whole.worst[0].serialized == b"row 58"


def test_above_the_limit_the_rows_with_the_smallest_digests_stay() -> None:
    parts = [part(range(30)), part(range(30, 60))]
    found = predictions.in_order(predictions.merge_tables(parts, max_rows=10))
    smallest = sorted(digest(f"row {number}".encode()) for number in range(60))[:10]
    assert (found.rows, found.digests.tolist()) == (60, smallest)
    assert same(
        found,
        predictions.in_order(
            predictions.merge_tables([predictions.merge_tables(parts[::-1], max_rows=10)], max_rows=10)
        ),
    )
    # The worst rows are looked for among all.
    assert found.worst == predictions.merge_tables(parts).worst


def test_with_many_classes_fewer_rows_stay() -> None:
    found = predictions.merge_tables([kept_of([1] * 50, np.full((50, 8), 0.125))], max_rows=40, max_values=100)
    assert found.predictions.shape == (12, 8)


def test_rows_that_are_all_the_same_are_not_too_many() -> None:
    assert len(predictions.merge_tables([part(range(40), rows_a_value=40)], max_rows=10).digests) == 10


def test_the_file_holds_everything() -> None:
    features = {"color": np.array([[b"red"], [b"blue"]], object)}
    found = kept_of([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.full((2, 3), 0.3), features, [b"\x00\xff", b""])
    read = predictions.table_from_bytes(predictions.table_to_bytes(found))
    assert same(read, found)
    assert (read.rows, read.features, read.values) == (2, ("color",), ((("red",), ("blue",)),))
    assert {row.serialized for row in read.worst} == {b"\x00\xff", b""}
    assert read.baseline is not None
    np.testing.assert_array_equal(read.baseline, found.baseline)


def test_predictions_that_are_no_numbers_are_the_worst() -> None:
    found = kept_of([0, 1, 0], [[0.5], [np.nan], [1.0]])
    assert [row.error for row in found.worst] == [np.inf, 1.0, 0.5]
    assert predictions.table_from_bytes(predictions.table_to_bytes(found)).worst[0].error == np.inf


UNKNOWN: dict[str, tuple[Any, Any]] = {
    "text as labels": (np.array([b"a", b"b"], object), np.ones((2, 2), np.float32)),
    "several classes a row": (np.array([[1, 1], [0, 1]]), np.ones((2, 2), np.float32)),
    "several numbers a row": (np.array([[1, 1], [0, 1]]), np.ones((2, 1), np.float32)),
    "classes that are not predicted": (np.array([1, 7]), np.ones((2, 3), np.float32)),
    "text as predictions": (np.array([1, 0]), np.array([[b"a"], [b"b"]], object)),
}


@pytest.mark.parametrize(("labels", "outputs"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_of_what_is_not_known_only_the_rows_are_counted(labels: Any, outputs: Any) -> None:
    found = recording.read_batch(batch(labels, outputs), ONE)
    assert (found.rows, found.predictions.shape, found.worst) == (2, (0, 0), ())
    mixed = predictions.in_order(predictions.merge_tables([part(range(3)), found]))
    assert (mixed.rows, len(mixed.labels)) == (5, 0)
    assert same(predictions.table_from_bytes(predictions.table_to_bytes(mixed)), mixed)


def test_an_empty_batch_changes_nothing() -> None:
    empty = recording.read_batch(batch(np.zeros(0, np.int64), np.zeros((0, 1), np.float32)), ONE)
    assert same(predictions.merge_tables([empty, part(range(3)), empty]), part(range(3)))
    assert predictions.merge_tables([empty, empty]).rows == 0


def test_labels_may_be_one_hot() -> None:
    assert kept_of([[0, 0, 1], [1, 0, 0]], np.full((2, 3), 1 / 3)).labels.tolist() == [2, 0]


def test_one_output_of_several_is_judged() -> None:
    outputs = {"class": np.array([1, 0]), "probabilities": np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)}
    found = recording.read_batch(batch(np.array([1, 0]), outputs), Source(None, None, "probabilities", ()))
    assert found.predictions.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_a_baseline_of_another_shape_is_no_baseline() -> None:
    labels = np.array([1, 0])
    outputs = {"candidate": np.ones((2, 3), np.float32), "baseline": np.ones((2, 2), np.float32)}
    source = Source("candidate", "baseline", "", ())
    found = recording.read_batch(batch({"candidate": labels, "baseline": labels}, outputs), source)
    assert (found.predictions.shape, found.baseline) == ((2, 3), None)


def test_weights_are_kept_with_their_rows(tmp_path: Path) -> None:
    parts = [kept_of([0, 1], [0.1, 0.2], weights=[1, 2.5]), kept_of([1], [0.3], rows=[b"row 7"], weights=[0])]
    whole = predictions.in_order(predictions.merge_tables(parts))
    assert whole.weights is not None
    weights = dict(zip(whole.digests.tolist(), whole.weights.tolist(), strict=True))
    assert weights == {digest(b"row 0"): 1, digest(b"row 1"): 2.5, digest(b"row 7"): 0}
    assert same(predictions.table_from_bytes(predictions.table_to_bytes(whole)), whole)
    rows, _ = predictions.score_rows(whole)
    assert rows.weights.tolist() == whole.weights.tolist()
    assert predictions.score_rows(part(range(3)))[0].weights.tolist() == [1, 1, 1]


MISSING = VarLenTensorValue(np.array([1.0, 2.0]), np.array([[0, 0], [2, 0]]), np.array([3, 1]))


@pytest.mark.parametrize(
    ("weights", "wrong", "received"),
    [
        (np.array([[1.0], [-2.0], [-3.0]]), 2, "[-2.0]"),
        (np.array([[1.0], [np.nan], [2.0]]), 1, "[nan]"),
        (np.array([[b"a"], [b"b"], [b"c"]], object), 3, "[b'a']"),
        (np.ones((3, 2)), 3, "[1.0, 1.0]"),
        (MISSING, 1, "[]"),
        (None, 3, "[]"),
    ],
    ids=["negative", "no number", "text", "several", "missing", "no such feature"],
)
def test_a_row_without_a_weight_ends_the_evaluation(weights: Any, wrong: int, received: str) -> None:
    extracts = batch(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3]), {} if weights is None else {"weight": weights})
    with pytest.raises(DataError) as raised:
        recording.check_weights(extracts, Source(None, None, "", (), "weight"))
    assert raised.value.what == (
        f"evaluator.example_weight: no weight in 'weight' in {wrong} of 3 rows that were read together; "
        f"received {received}, expected one number of at least 0."
    )


def test_rows_with_weights_pass() -> None:
    extracts = batch(np.array([0, 1]), np.array([0.1, 0.2]), {"weight": np.array([[0], [2]])})
    assert recording.check_weights(extracts, Source(None, None, "", (), "weight")) is extracts


def test_features_of_several_kinds() -> None:
    ragged = VarLenTensorValue(
        values=np.array([b"x", b"y", b"z"], object),
        indices=np.array([[0, 0], [2, 0], [2, 1]]),
        dense_shape=np.array([3, 2]),
    )
    columns = {"hour": np.array([[7], [7], [23]]), "none": np.zeros((3, 0), np.int64), "words": ragged}
    found = kept_of([0, 1, 0], [0.1, 0.2, 0.3], features=columns)
    values = [[found.values[feature][code] for code in found.slices[:, feature]] for feature in range(3)]
    assert found.features == ("hour", "none", "words")
    assert values == [[("7",), ("7",), ("23",)], [(), (), ()], [("x",), (), ("y", "z")]]


def test_a_feature_may_be_a_transformed_one_or_missing() -> None:
    extracts = {**batch(np.array([0, 1]), np.array([[0.1], [0.2]])), "transformed_features": {"big": np.array([0, 1])}}
    found = recording.read_batch(extracts, Source(None, None, "", ("big", "nowhere")))
    assert found.values == ((("0",), ("1",)), ((),))


def test_the_source_is_read_from_tfma_s_configuration() -> None:
    candidate = config_pb2.ModelSpec(name="candidate", prediction_key="scores")
    slices = [
        config_pb2.SlicingSpec(),
        config_pb2.SlicingSpec(feature_keys=["hour", "company"]),
        config_pb2.SlicingSpec(feature_keys=["hour"]),
    ]
    alone = config_pb2.EvalConfig(model_specs=[candidate], slicing_specs=slices)
    assert Source.of(alone) == Source(None, None, "scores", ("company", "hour"))
    both = config_pb2.EvalConfig(model_specs=[candidate, config_pb2.ModelSpec(name="baseline", is_baseline=True)])
    assert Source.of(both) == Source("candidate", "baseline", "scores", ())


def through_beam(batches: list[dict[str, Any]], path: Path) -> PredictionsTable:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(batches) | Record([recording.table_recorder(str(path), ONE)])
    return recording.read_table(str(path))


def test_batches_go_through_beam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_PARTS", 3)
    rows = [f"row {number}".encode() for number in range(20)]
    labels, scores = np.arange(20) % 2, np.linspace(0, 1, 20, dtype=np.float32)[:, None]
    batches = [
        batch(labels[start : start + 2], scores[start : start + 2], rows=rows[start : start + 2])
        for start in range(0, 20, 2)
    ]
    whole = predictions.in_order(kept_of(labels, scores, rows=rows))
    assert same(through_beam(batches, tmp_path / "a.npz"), whole)
    assert same(through_beam(batches[::-1], tmp_path / "b.npz"), whole)
    # Nothing but arrays: no pickle is needed to read it.
    assert sorted(np.load(tmp_path / "a.npz", allow_pickle=False).files)[0] == "digests"


def test_the_combiner_without_rows() -> None:
    merging = recording.MergeTables()
    empty = merging.compact(merging.create_accumulator())
    assert merging.extract_output(empty).rows == 0
