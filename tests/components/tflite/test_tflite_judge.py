"""The judge's arithmetic, on models that are functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tflite_models
from tflite_models import TABLE_SPEC

from components.tflite import judge
from components.tflite.judge import Judgement
from components.tflite.saved_model import Arrays, Rows
from contracts.errors import ExportError
from contracts.model_reports import OutputDifference


def spec(*shape: int | None, dtype: tf.DType = tf.float32) -> tf.TensorSpec:
    return tf.TensorSpec(shape, dtype)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]], [1, 0]),
        ([[0.4], [0.5], [0.6]], [0, 0, 1]),
        ([0.4, 0.51], [0, 1]),
    ],
)
def test_classes_of_scores(scores: list[object], expected: list[int]) -> None:
    assert judge.classes(np.array(scores, np.float32)).tolist() == expected


def test_the_output_to_judge_by() -> None:
    ids, embedding = spec(None, dtype=tf.int64), spec(None, 64)
    assert judge.scores_output({"class_ids": ids, "anything": spec(None, 3)}) == "anything"
    assert judge.scores_output({"embedding": embedding, "probabilities": spec(None, 3)}) == "probabilities"
    heads = {"probabilities": spec(None, 3), "tip": spec(None, 1), "ids": ids}
    assert [judge.scores_output(heads, judged) for judged in ("tip", "ids", "")] == ["tip", *["probabilities"] * 2]
    with pytest.raises(ExportError) as caught:
        judge.scores_output({"b": embedding, "a": spec(None, 3), "ids": ids})
    assert str(caught.value) == (
        "the classes that the model predicts cannot be told from its outputs a float32 [None, 3], b float32 "
        "[None, 64], ids int64 [None]; expected one float output [batch, classes] or [batch, 1], or one with a name "
        "of probabilities, probability, scores.\n"
        "Give the model such an output, or set tflite.quantization to none."
    )


@pytest.mark.parametrize(("loss", "bar", "accepted"), [(0.01, 0.01, True), (0.011, 0.01, False), (-0.2, 0.0, True)])
def test_the_bar_is_a_fraction_of_rows(loss: float, bar: float, accepted: bool) -> None:
    assert Judgement(1000, 0.99 - loss, 0.99, {}).accepts(bar) is accepted


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """Four rows with the fares 0, 1, 2, 3, of which the last two are big."""
    fares = np.arange(4, dtype=np.float32)
    tflite_models.write_split(tmp_path / "split", {"fare": fares, "big": (fares > 1).astype(int)})
    files = sorted(map(str, (tmp_path / "split").iterdir()))
    return Rows("eval", files, TABLE_SPEC, {"fare": spec(None)}, {"fare": "fare"}, "big")


def model(threshold: float, shift: float = 0.0) -> judge.Callable[[Arrays], Arrays]:
    def predict(inputs: Arrays) -> Arrays:
        big = inputs["fare"] > threshold
        scores = np.where(big, 0.75, 0.25) + shift
        return {"probability": scores[:, None].astype(np.float32), "class_ids": big.astype(np.int64)}

    return predict


@pytest.mark.parametrize("batch_rows", [None, 1])
def test_both_models_are_judged_on_the_same_rows(rows: Rows, batch_rows: int | None) -> None:
    judgement = judge.judge(rows, "probability", model(1.5), model(2.5, 0.125), batch_rows)
    assert (judgement.rows, judgement.saved_model_accuracy, judgement.accuracy) == (4, 1.0, 0.75)
    # Fare 2 changes its class: 0.75 becomes 0.375; all others move by 0.125.
    assert judgement.differences == {
        "probability": OutputDifference(0.375, 0.1875),
        "class_ids": OutputDifference(1.0, 0.25),
    }


def test_a_nan_is_not_lost(rows: Rows) -> None:
    def broken(inputs: Arrays) -> Arrays:
        return {"probability": np.where(inputs["fare"] == 1, np.nan, 0.25)}

    judgement = judge.judge(rows, "probability", lambda inputs: {"probability": inputs["fare"] * 0.0}, broken, 1)
    assert judgement.differences == {"probability": OutputDifference(None, None)}
    assert judgement.accuracy == 0.5
