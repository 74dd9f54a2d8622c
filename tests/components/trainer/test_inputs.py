"""The input pipeline: transformed rows to batches."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tiny_recipe
from tiny_artifacts import Tiny

from components.trainer import features, inputs
from components.trainer.settings import InputSettings
from contracts.errors import TrainingError

ALL = [row["id"] for row in tiny_recipe.TRAIN]
WAYS = {"in memory": InputSettings(cache="memory"), "streamed": InputSettings(cache="none")}
WAYS["on disk"] = InputSettings(cache="disk")


@pytest.fixture(params=WAYS)
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InputSettings:
    """The ways of reading a training split."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return WAYS[request.param]


def layout(tiny: Tiny, sample_weight: str | None = None) -> inputs.Layout:
    schema = tiny.output.transformed_metadata.schema
    found = features.from_schema(schema, "big", sample_weight)
    return inputs.Layout.from_transform(tiny.output, found, "big", sample_weight)


def opened(tiny: Tiny, settings: InputSettings, split: str = "train") -> inputs.Split:
    cache_dir = Path(tempfile.mkdtemp()) if settings.cache == "disk" else None
    return inputs.open_split(tiny.files(split), layout(tiny), settings, cache_dir)


def batches(tiny: Tiny, settings: InputSettings, number: int, size: int, seed: int = 1, augment: Any = None) -> Any:
    data_set = opened(tiny, settings).training_batches(size, seed, settings, augment)
    return list(data_set.take(number).as_numpy_iterator())


def ids(found: list[tuple[dict[str, Any], Any]]) -> list[int]:
    return [int(i) for rows, *_ in found for i in rows["id"]]


def test_batches_have_the_size_asked_for_and_the_label_apart(tiny: Tiny, settings: InputSettings) -> None:
    found = batches(tiny, settings, 5, 50)
    assert {name for rows, _ in found for name in rows} == {"id", "fare", "fare_bucket", "company"}
    assert {(len(rows["fare"]), label.shape) for rows, label in found} == {(50, (50,))}


def test_a_pass_holds_every_row_once_in_another_order(tiny: Tiny, settings: InputSettings) -> None:
    found = ids(batches(tiny, settings, 6, 40))
    first, second = found[:120], found[120:]
    assert sorted(first) == sorted(second) == ALL
    assert ALL != first != second


def test_rows_stay_whole(tiny: Tiny, settings: InputSettings) -> None:
    expected = tiny.tensors(tiny.transformed, "train")
    for rows, label in batches(tiny, settings, 3, 40):
        for name, values in {**rows, "big": label}.items():
            np.testing.assert_array_equal(values, expected[name][rows["id"]], err_msg=name)


def test_the_seed_decides_the_order(tiny: Tiny, settings: InputSettings) -> None:
    assert ids(batches(tiny, settings, 4, 40)) == ids(batches(tiny, settings, 4, 40))
    assert ids(batches(tiny, settings, 3, 40)) != ids(batches(tiny, settings, 3, 40, seed=2))


def test_augmentation_is_behind_the_cache_and_seeded_by_batch(tiny: Tiny, settings: InputSettings) -> None:
    def augment(rows: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
        assert sorted(rows) == ["company", "fare", "fare_bucket", "id"]
        return {"fare": tf.random.stateless_uniform(tf.shape(rows["fare"]), seed)}

    first, second = (batches(tiny, settings, 6, 40, augment=augment) for _ in range(2))
    plain = batches(tiny, settings, 6, 40)
    assert ids(first) == ids(plain)
    fares = [rows["fare"] for rows, _ in first]
    np.testing.assert_array_equal(fares, [rows["fare"] for rows, _ in second])
    assert len({float(batch[0]) for batch in fares}) == 6
    np.testing.assert_array_equal(first[0][0]["company"], plain[0][0]["company"])


def test_a_batch_larger_than_the_split(tiny: Tiny, settings: InputSettings) -> None:
    with pytest.raises(TrainingError) as caught:
        opened(tiny, settings).training_batches(121, 1, settings)
    assert str(caught.value) == (
        "The training split has 120 rows, fewer than one batch of 121.\n"
        "Set trainer.batch_size to at most the number of rows."
    )


def test_evaluation_is_one_pass_in_order(tiny: Tiny, settings: InputSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PARSE_ROWS", 20)
    split = opened(tiny, settings, "eval")
    found = list(split.evaluation_batches(settings).as_numpy_iterator())
    assert ids(found) == [row["id"] for row in tiny_recipe.EVAL]
    assert [label.shape for _, label in found] == [(20,), (10,)]
    assert split.evaluation_steps == 2
    assert "big" not in found[0][0]


def test_a_sample_weight_is_the_third_part_and_no_feature(tiny: Tiny, settings: InputSettings) -> None:
    split = inputs.open_split(tiny.files("eval"), layout(tiny, "fare"), settings)
    rows, _, weight = next(split.training_batches(30, 1, settings).as_numpy_iterator())
    assert sorted(rows) == ["company", "fare_bucket", "id"]
    np.testing.assert_array_equal(weight, tiny.tensors(tiny.transformed, "eval")["fare"][rows["id"] - 120])


@pytest.mark.parametrize(("memory", "kept"), [(120 * 5 * 8 * 4, True), (1_000, False)])
def test_a_split_is_kept_in_memory_where_it_takes_a_quarter_at_most(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, memory: int, kept: bool
) -> None:
    monkeypatch.setattr(inputs, "_machine_memory", lambda: memory)
    split = opened(tiny, InputSettings())
    assert (split.columns is not None, split.rows) == (kept, 120)


@pytest.mark.parametrize("parse_rows", [7, 120, 8192])
def test_rows_are_counted(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, parse_rows: int) -> None:
    monkeypatch.setattr(inputs, "PARSE_ROWS", parse_rows)
    assert inputs.count_rows(tiny.files("train")) == 120
    assert inputs.count_rows([*tiny.files("train"), *tiny.files("eval")]) == 150


def test_wide_rows_come_in_smaller_chunks(tiny: Tiny) -> None:
    pixels = tf.io.FixedLenFeature([32, 32, 3], tf.int64)
    wide = inputs.Layout({"image": pixels, "label": tf.io.FixedLenFeature([], tf.int64)}, [], "label")
    assert wide.chunk_rows == inputs.CHUNK_ELEMENTS // 3073
    assert layout(tiny).chunk_rows == inputs.PARSE_ROWS


def test_pixels_are_kept_as_bytes() -> None:
    pixels = tf.io.FixedLenFeature([4], tf.int64)
    wide = inputs.Layout({"image": pixels}, [features.Feature("image", tf.uint8, (4,), None)], "label")
    example = tf.train.Example()
    example.features.feature["image"].int64_list.value.extend([0, 1, 128, 255])
    rows = wide.parse(tf.constant([example.SerializeToString()]))
    assert rows["image"].dtype == tf.uint8
    assert rows["image"].numpy().tolist() == [[0, 1, 128, 255]]
