"""Labels that are missing, all the same, or beyond the model's outputs are refused before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from components.trainer import labels
from components.trainer.features import Feature
from components.trainer.inputs import Layout, Split
from contracts.errors import TrainingError

LAYOUT = Layout({"kind": tf.io.FixedLenFeature([], tf.int64)}, [Feature("x", tf.float32, (), None)], "kind")


class OwnLoss(tf_keras.losses.SparseCategoricalCrossentropy):
    """A loss of a recipe's own."""


def model(num_classes: int, loss: Any = "sparse_categorical_crossentropy") -> tf_keras.Model:
    inputs = tf_keras.Input([])
    output = tf_keras.layers.Dense(num_classes, name="dense")(inputs[:, tf.newaxis])
    built = tf_keras.Model(inputs, output)
    built.compile(loss=loss)
    return built


def split(*ids: int) -> Split:
    return Split([], LAYOUT, len(ids), {"kind": tf.constant(ids, tf.int64), "x": tf.zeros([len(ids)])})


def numbers(*values: float | list[float]) -> Split:
    """A split whose label is a float, or a list of floats."""
    spec = tf.io.FixedLenFeature(tf.constant(values).shape[1:], tf.float32)
    layout = Layout({"kind": spec}, [Feature("x", tf.float32, (), None)], "kind")
    return Split([], layout, len(values), {"kind": tf.constant(values), "x": tf.zeros([len(values)])})


def check(checked: tf_keras.Model, splits: dict[str, Split], class_names: list[str] | None) -> None:
    labels.check_outputs(checked, next(iter(splits.values())), labels.read_labels(splits), class_names)


def check_values(class_names: list[str] | None = None, **splits: Split) -> None:
    labels.check_values(labels.read_labels(splits), class_names)


def message(call: Callable[[], None]) -> str:
    with pytest.raises(TrainingError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        tf_keras.losses.sparse_categorical_crossentropy,
        tf_keras.losses.SparseCategoricalCrossentropy(),
        OwnLoss(),
    ],
)
def test_an_id_beyond_the_last_output(loss: Any) -> None:
    assert message(lambda: check(model(3, loss), {"train": split(0, 2), "eval": split(1, 3)}, None)) == (
        "The label 'kind' has the ids 1 to 3 in the eval split, but the model has 3 outputs, for the ids 0 to 2.\n"
        "Give the model 4 outputs (trainer.params), or look at how the label is made."
    )


def test_a_negative_id() -> None:
    assert message(lambda: check(model(3), {"train": split(-1, 2)}, None)) == (
        "The label 'kind' has the ids -1 to 2 in the train split, but the model has 3 outputs, for the ids 0 to 2.\n"
        "Look at how preprocessing_fn makes the label."
    )


def test_fewer_or_more_classes_than_outputs() -> None:
    assert message(lambda: check(model(3), {"train": split(0, 1)}, ["cats", "dogs"])) == (
        "The data have 2 classes (cats, dogs), but the model has 3 outputs.\n"
        "Give the model 2 outputs (trainer.params), or look at data.path."
    )
    many = message(lambda: check(model(3), {"train": split(0)}, [str(name) for name in range(12)]))
    assert many.startswith("The data have 12 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …), but")


def test_what_fits_passes() -> None:
    check(model(3), {"train": split(0, 1), "eval": split(2)}, None)
    check(model(3), {"train": split(0, 1), "eval": split(2)}, ["cats", "dogs", "birds"])


def test_other_losses_know_no_class_ids() -> None:
    check(model(1, "mse"), {"train": split(-5, 700)}, None)


@pytest.mark.parametrize("loss", ["binary_crossentropy", tf_keras.losses.BinaryCrossentropy()])
def test_a_class_2_of_a_binary_model(loss: Any) -> None:
    assert message(lambda: check(model(1, loss), {"train": split(0, 1), "eval": split(0, 2, 2)}, None)) == (
        "The label 'kind' is 2 in 2 rows, 0 in 1 rows of the eval split, but the model's loss is a binary "
        "cross-entropy, for a label of 0 or 1.\n"
        "Make the label 0 or 1 in preprocessing_fn, or give the model an output for each class and the loss "
        "sparse_categorical_crossentropy."
    )
    check(model(1, loss), {"train": split(0, 1), "eval": numbers(0.2, 0.9)}, None)


def test_missing_labels_are_counted_by_split() -> None:
    nan, infinite = float("nan"), float("inf")
    assert message(lambda: check_values(train=numbers(1.0, nan, infinite, 0.0), eval=numbers(0.0, nan))) == (
        "The label 'kind' is missing, or not a finite number, in 2 of 4 rows of the train split and 1 of 2 rows of the "
        "eval split.\n"
        "Leave these rows out of the data (data.on_missing_label does it by the raw column), or look at how "
        "preprocessing_fn makes the label."
    )
    assert "in 1 of 2 rows of the train split." in message(
        lambda: check_values(train=numbers([0.0, nan], [1.0, 2.0]), eval=numbers([0.0, 1.0], [1.0, 2.0]))
    )


def test_one_class_is_refused_in_either_split_by_its_name() -> None:
    fix = "\nLook at how preprocessing_fn makes it, at the data, and at how data.splits or data.split_by divide them."
    assert message(lambda: check_values(["no", "yes"], train=split(1, 1, 1), eval=split(0, 1, 1))) == (
        "The label 'kind' is the same in all 3 rows of the train split (train: 1 (yes) in 3 rows; eval: 1 (yes) in 2 "
        f"rows, 0 (no) in 1 rows): there is nothing to learn, or nothing to judge by.{fix}"
    )
    assert "in all 2 rows of the eval split (train: " in message(
        lambda: check_values(train=numbers(0.5, 1.5), eval=numbers(2.0, 2.0))
    )
    assert "in all 2 rows of the train split" in message(
        lambda: check_values(train=numbers([0.0, 1.0], [0.0, 1.0]), eval=numbers([0.0, 1.0], [1.0, 0.0]))
    )
    check_values(train=split(0, 1), eval=split(1, 0))


def test_a_label_of_many_values_is_told_by_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MAX_VALUES", 2)
    assert "(train: 1 to 3 in 3 rows; eval: 7 in 1 rows)" in message(
        lambda: check_values(train=numbers(1.0, 2.0, 3.0), eval=numbers(7.0))
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (tf.io.VarLenFeature(tf.float32), "The label 'kind' may be missing from a row, or have several values"),
        (tf.io.FixedLenFeature([], tf.string), "The label 'kind' is text, expected numbers, or ids of classes."),
    ],
)
def test_a_label_that_is_no_number_in_every_row(spec: Any, problem: str) -> None:
    layout = Layout({"kind": spec}, LAYOUT.features, "kind")
    assert message(lambda: labels.check_kinds(layout)).startswith(problem)


def test_an_output_of_another_width_than_its_label() -> None:
    assert message(lambda: check(model(3, "mse"), {"train": split(0, 1)}, None)) == (
        "The model's output 'dense' has the shape [None, 3], 3 numbers a row, but the label 'kind' has 1 a row, and "
        "the loss mse compares one with one.\n"
        "Give the last layer in build_model 1 units; for ids of classes take the loss sparse_categorical_crossentropy."
    )
    check(model(2, "mse"), {"train": numbers([0.0, 1.0], [2.0, 3.0])}, None)
