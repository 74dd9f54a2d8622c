"""What training reads: features from the transformed schema, batches from the transformed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tiny_recipe
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tiny_artifacts import Tiny

from components.errors import TrainingError
from components.trainer import features, inputs
from components.trainer.fitting import schedule
from components.trainer.settings import TrainerSettings


@pytest.mark.parametrize(
    ("settings", "rows", "expected"),
    [
        ({"epochs": 3, "batch_size": 40}, 100, (3, 2)),
        ({"epochs": 1, "batch_size": 100}, 100, (1, 1)),
        ({"train_steps": 1000, "batch_size": 40}, 10_000, (4, 250)),
        ({"train_steps": 1001, "batch_size": 40}, 10_000, (5, 201)),
        ({"train_steps": 10, "batch_size": 40}, 10_000, (1, 10)),
        ({"train_steps": 7, "batch_size": 40}, 79, (7, 1)),
    ],
)
def test_the_schedule(settings: dict[str, int], rows: int, expected: tuple[int, int]) -> None:
    assert schedule(TrainerSettings.model_validate(settings), rows) == expected


def test_fewer_rows_than_a_batch() -> None:
    with pytest.raises(TrainingError) as caught:
        schedule(TrainerSettings(epochs=1, batch_size=40), 39)
    assert str(caught.value) == (
        "The training split has 39 rows, fewer than one batch of 40.\n"
        "Set trainer.batch_size to at most the number of rows."
    )


SCHEMA = """
feature { name: "fare" type: FLOAT shape {} }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 is_categorical: true } shape {} }
feature { name: "passengers" type: INT int_domain { min: 0 max: 8 } shape {} }
feature { name: "image" type: FLOAT shape { dim { size: 8 } dim { size: 4 } } }
feature { name: "word" type: BYTES shape {} }
feature { name: "big" type: INT shape {} }
"""


def schema(text: str = SCHEMA) -> schema_pb2.Schema:
    return text_format.Parse(text, schema_pb2.Schema())


def test_features_are_read_from_the_schema_without_the_label() -> None:
    found = features.from_schema(schema(), "big")
    assert [(f.name, f.dtype, f.shape, f.num_categories) for f in found] == [
        ("fare", tf.float32, (), None),
        ("hour", tf.int64, (), 24),
        ("passengers", tf.int64, (), None),
        ("image", tf.float32, (8, 4), None),
        ("word", tf.string, (), None),
    ]


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(TrainingError) as caught:
        features.from_schema(schema(), "bigger")
    assert str(caught.value) == (
        "The label 'bigger' is not among the transformed features: big, fare, hour, image, passengers, word.\n"
        "Return it from preprocessing_fn, or name another label in recipe.yaml."
    )


def test_a_feature_without_a_fixed_shape() -> None:
    with pytest.raises(TrainingError) as caught:
        features.from_schema(schema(SCHEMA + 'feature { name: "tags" type: BYTES }'), "big")
    assert str(caught.value) == (
        "The transformed feature 'tags' has no fixed shape: it is sparse or ragged.\n"
        "Make it dense in preprocessing_fn (fill in what is missing)."
    )


def test_what_tft_wrote_tells_categories_from_numbers(tiny: Tiny) -> None:
    found = {f.name: f for f in features.from_schema(tiny.output.transformed_metadata.schema, "big")}
    assert set(found) == {"id", "fare", "fare_bucket", "company"}
    assert (found["fare_bucket"].num_categories, found["company"].num_categories) == (4, 5)
    assert (found["fare"].num_categories, found["id"].num_categories) == (None, None)


@pytest.fixture(params=["in memory", "streamed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading a training split."""
    monkeypatch.setattr(inputs, "IN_MEMORY_FRACTION", 0.25 if request.param == "in memory" else 0.0)
    return str(request.param)


def batches(tiny: Tiny, number: int, size: int, seed: int = 1) -> list[tuple[dict[str, Any], Any]]:
    data_set = inputs.training_batches(tiny.files("train"), tiny.output, "big", size, seed)
    return list(data_set.take(number).as_numpy_iterator())


def ids(found: list[tuple[dict[str, Any], Any]]) -> list[int]:
    return [int(i) for rows, _ in found for i in rows["id"]]


ALL = [row["id"] for row in tiny_recipe.TRAIN]


def test_the_size_of_a_split_decides_how_it_is_read(tiny: Tiny, way: str) -> None:
    assert inputs.fits_in_memory(tiny.files("train")) == (way == "in memory")


def test_batches_have_the_size_asked_for_and_the_label_apart(tiny: Tiny, way: str) -> None:
    found = batches(tiny, 5, 50)
    assert {name for rows, _ in found for name in rows} == {"id", "fare", "fare_bucket", "company"}
    assert {(len(rows["fare"]), label.shape) for rows, label in found} == {(50, (50,))}


def test_a_pass_holds_every_row_once_in_another_order(tiny: Tiny, way: str) -> None:
    found = ids(batches(tiny, 6, 40))
    first, second = found[:120], found[120:]
    assert sorted(first) == sorted(second) == ALL
    assert ALL != first != second


def test_rows_stay_whole(tiny: Tiny, way: str) -> None:
    expected = tiny.tensors(tiny.transformed, "train")
    for rows, label in batches(tiny, 3, 40):
        for name, values in {**rows, "big": label}.items():
            np.testing.assert_array_equal(values, expected[name][rows["id"]], err_msg=name)


def test_the_seed_decides_the_order(tiny: Tiny, way: str) -> None:
    assert ids(batches(tiny, 4, 40)) == ids(batches(tiny, 4, 40))
    assert ids(batches(tiny, 3, 40)) != ids(batches(tiny, 3, 40, seed=2))


def test_evaluation_is_one_pass_in_order(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PARSE_ROWS", 20)
    found = list(inputs.evaluation_batches(tiny.files("eval"), tiny.output, "big").as_numpy_iterator())
    assert ids(found) == [row["id"] for row in tiny_recipe.EVAL]
    assert [label.shape for _, label in found] == [(20,), (10,)]
    assert "big" not in found[0][0]


@pytest.mark.parametrize("parse_rows", [7, 120, 8192])
def test_rows_are_counted(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, parse_rows: int) -> None:
    monkeypatch.setattr(inputs, "PARSE_ROWS", parse_rows)
    assert inputs.count_rows(tiny.files("train")) == 120
    assert inputs.count_rows([*tiny.files("train"), *tiny.files("eval")]) == 150
