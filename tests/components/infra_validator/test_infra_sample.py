"""The rows that an evaluation kept, found again in the split and among what Transform wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import infra_models
import numpy as np
import pytest
import tensorflow as tf

from components.infra_validator import sample
from contracts.errors import DataError

SPEC = {"x": tf.io.FixedLenFeature([], tf.float32), "many": tf.io.VarLenFeature(tf.float32)}


def write(path: Path, values: Sequence[float]) -> str:
    """A file of rows as ExampleGen and Transform write them."""
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for value in values:
            writer.write(infra_models.row(value))
    return str(path)


def keep(folder: Path, *batches: Sequence[float]) -> Path:
    """What an Evaluator leaves, a log a batch."""
    path = folder / "sampled_predictions.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for values in batches:
            writer.write(infra_models.log(infra_models.seen(values)).SerializeToString())
    return path


def test_rows_are_found_over_all_files_and_joined_with_what_was_made_of_them(tmp_path: Path) -> None:
    raw = [write(tmp_path / "raw-0", [0, 1, 2]), write(tmp_path / "raw-1", [3, 4, 4])]
    made = [write(tmp_path / "made-0", [100, 101, 102]), write(tmp_path / "made-1", [103, 104, 105])]
    first, second = sample.read_batches(keep(tmp_path, [4, 0], [2]), 100, raw, made, SPEC)
    assert (first.numbers, second.numbers) == ([4, 0], [2])
    # Features of no fixed shape are not compared; of equal rows the first counts.
    assert {name: values.tolist() for name, values in first.transformed.items()} == {"x": [104.0, 100.0]}
    np.testing.assert_array_equal(first.predictions["score"], [12.0, 0.0])
    assert second.rows == [infra_models.row(2)]
    assert [example.features.feature["x"].float_list.value[0] for example in first.examples] == [4.0, 0.0]


def test_no_more_rows_are_read_than_wanted(tmp_path: Path) -> None:
    raw, made = [write(tmp_path / "raw", range(5))], [write(tmp_path / "made", range(5))]
    kept = keep(tmp_path, [0, 1], [2, 3], [4])
    assert [batch.numbers for batch in sample.read_batches(kept, 3, raw, made, SPEC)] == [[0, 1], [2]]


def test_large_rows_are_fewer_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "REQUEST_BYTES", 2 * len(infra_models.row(1.0)))
    raw, made = [write(tmp_path / "raw", range(5))], [write(tmp_path / "made", range(5))]
    batches = sample.read_batches(keep(tmp_path, range(5)), 100, raw, made, SPEC)
    assert [batch.numbers for batch in batches] == [[0, 1], [2, 3], [4]]


def test_rows_of_another_split_are_refused(tmp_path: Path) -> None:
    raw, made = [write(tmp_path / "raw", [1])], [write(tmp_path / "made", [1])]
    with pytest.raises(DataError, match=r"holds 2 rows that are not in .*/raw\."):
        sample.read_batches(keep(tmp_path, [1, 2, 3]), 100, raw, made, SPEC)


def test_transformed_rows_of_another_number_are_refused(tmp_path: Path) -> None:
    raw, made = [write(tmp_path / "raw", [1, 2])], [write(tmp_path / "made", [1])]
    with pytest.raises(DataError, match=r"/made does not have a row for each row of .*/raw\."):
        sample.read_batches(keep(tmp_path, [1]), 100, raw, made, SPEC)
