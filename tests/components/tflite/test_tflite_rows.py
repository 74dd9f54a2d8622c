"""Transformed examples as the model's inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tflite_models
from tflite_models import DIGITS_SPEC, TABLE_SPEC

from components.tflite.saved_model import Rows
from contracts.errors import DataError, ExportError

NUMBER = tf.TensorSpec([None], tf.float32)


def table(folder: Path, rows: int, **changes: Any) -> Rows:
    """Rows whose fare is their position."""
    fares = np.arange(rows, dtype=np.float32)
    tflite_models.write_split(folder / "split", {"fare": fares, "company": fares.astype(int), "big": fares > 2})
    files = sorted(map(str, (folder / "split").iterdir()))
    fields = {"split": "train", "files": files, "feature_spec": TABLE_SPEC, "inputs": {"fare": NUMBER}, "label": "big"}
    fields |= {"features": {name: name for name in changes.get("inputs", fields["inputs"])}}
    return Rows(**(fields | changes))


def test_batches_are_in_order_over_the_files(tmp_path: Path) -> None:
    batches = list(table(tmp_path, 5).batches(4))
    assert [inputs["fare"].tolist() for inputs, _ in batches] == [[0, 1, 2, 3], [4]]
    assert [labels.tolist() for _, labels in batches] == [[0, 0, 0, 1], [1]]
    assert set(batches[0][0]) == {"fare"}


def test_integers_are_cast_to_the_types_of_the_signature(tmp_path: Path) -> None:
    images, labels = tflite_models.digits()
    tflite_models.write_split(tmp_path / "split", {"image": images[:3], "digit": labels[:3]})
    files = sorted(map(str, (tmp_path / "split").iterdir()))
    inputs = {"image": tf.TensorSpec([None, 8, 8, 1], tf.uint8)}
    [(batch, _)] = Rows("eval", files, DIGITS_SPEC, inputs, {"image": "image"}, "digit").batches(10)
    assert batch["image"].dtype == np.uint8
    np.testing.assert_array_equal(batch["image"], images[:3])


def test_rows_take_the_shapes_and_names_of_the_signature(tmp_path: Path) -> None:
    columns = {"in": tf.TensorSpec([None, 1], tf.float32)}
    [(inputs, _)] = table(tmp_path, 3, inputs=columns, features={"in": "fare"}).batches(10)
    assert {name: values.tolist() for name, values in inputs.items()} == {"in": [[0.0], [1.0], [2.0]]}


@pytest.mark.parametrize(
    ("rows", "count", "chosen"),
    [(10, 5, [0, 2, 4, 6, 8]), (10, 4, [0, 3, 5, 8]), (3, 200, [0, 1, 2]), (4, 1, [0]), (399, 200, None)],
)
def test_representative_rows_are_spread_over_the_split(
    tmp_path: Path, rows: int, count: int, chosen: list[int] | None
) -> None:
    positions = [int(row["fare"][0]) for row in table(tmp_path, rows).evenly_spaced(count)]
    if chosen is None:
        assert (len(positions), positions[-1], max(np.diff(positions))) == (count, 398, 2)
    else:
        assert positions == chosen


def test_a_split_without_rows_is_named(tmp_path: Path) -> None:
    empty = table(tmp_path, 0)
    message = (
        "the split 'train' has no rows; the TF Lite model is quantized on `train` and judged on `eval`.\n"
        "Give it rows (data.splits), or set tflite.quantization to none."
    )
    for read in (empty.batches(4), empty.evenly_spaced(4)):
        with pytest.raises(DataError) as caught:
            list(read)
        assert str(caught.value) == message


@pytest.mark.parametrize("name", ["tags", "unknown"])
def test_a_feature_that_is_not_dense_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError) as caught:
        table(tmp_path, 1, inputs={name: NUMBER}).check()
    assert str(caught.value) == (
        f"the model's feature {name!r} is not a transformed feature of fixed shape; those are "
        "fare, company, big, weight.\n"
        "Return it as a dense tensor from preprocessing_fn, or set tflite.quantization to none."
    )
