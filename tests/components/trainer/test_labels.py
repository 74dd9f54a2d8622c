"""Class ids beyond the model's outputs are refused before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from components.trainer import checks
from components.trainer.features import Feature
from components.trainer.inputs import Layout, Split
from contracts.errors import TrainingError

LAYOUT = Layout({"kind": tf.io.FixedLenFeature([], tf.int64)}, [Feature("x", tf.float32, (), None)], "kind")


class OwnLoss(tf_keras.losses.SparseCategoricalCrossentropy):
    """A loss of a recipe's own."""


def model(num_classes: int, loss: Any = "sparse_categorical_crossentropy") -> tf_keras.Model:
    inputs = tf_keras.Input([])
    built = tf_keras.Model(inputs, tf_keras.layers.Dense(num_classes)(inputs[:, tf.newaxis]))
    built.compile(loss=loss)
    return built


def split(*ids: int) -> Split:
    return Split([], LAYOUT, len(ids), {"kind": tf.constant(ids, tf.int64), "x": tf.zeros([len(ids)])})


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
    assert message(lambda: checks.check_labels(model(3, loss), {"train": split(0, 2), "eval": split(1, 3)}, None)) == (
        "The label 'kind' has the ids 1 to 3 in the eval split, but the model has 3 outputs, for the ids 0 to 2.\n"
        "Give the model 4 outputs (trainer.params), or look at how the label is made."
    )


def test_a_negative_id() -> None:
    assert message(lambda: checks.check_labels(model(3), {"train": split(-1, 2)}, None)) == (
        "The label 'kind' has the ids -1 to 2 in the train split, but the model has 3 outputs, for the ids 0 to 2.\n"
        "Look at how preprocessing_fn makes the label."
    )


def test_fewer_or_more_classes_than_outputs() -> None:
    assert message(lambda: checks.check_labels(model(3), {"train": split(0, 1)}, ["cats", "dogs"])) == (
        "The data have 2 classes (cats, dogs), but the model has 3 outputs.\n"
        "Give the model 2 outputs (trainer.params), or look at data.path."
    )
    many = message(lambda: checks.check_labels(model(3), {"train": split(0)}, [str(name) for name in range(12)]))
    assert many.startswith("The data have 12 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …), but")


def test_what_fits_passes() -> None:
    checks.check_labels(model(3), {"train": split(0, 1), "eval": split(2)}, None)
    checks.check_labels(model(3), {"train": split(0, 1), "eval": split(2)}, ["cats", "dogs", "birds"])


def test_other_losses_know_no_class_ids() -> None:
    checks.check_labels(model(1, "mse"), {"train": split(-5, 700)}, None)
