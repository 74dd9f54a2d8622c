"""`trainer.debug` names what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.trainer.checks import check_shapes, check_values, checked_numerics, explained_step
from components.trainer.features import Feature
from components.trainer.inputs import Layout, Split
from contracts.errors import TrainingError

FEATURES = [Feature("fare", tf.float32, (), None), Feature("hour", tf.int64, (), 24)]
SPEC = {
    "fare": tf.io.FixedLenFeature([], tf.float32),
    "hour": tf.io.FixedLenFeature([], tf.int64),
    "tip": tf.io.FixedLenFeature([], tf.float32),
}


def split(**changes: Any) -> Split:
    columns = {"fare": [1.0] * 5, "hour": [23, 0, 1, 2, 3], "tip": [0.0] * 5} | changes
    tensors = {name: tf.constant(values, SPEC[name].dtype) for name, values in columns.items()}
    return Split(["a.gz", "b.gz"], Layout(SPEC, FEATURES, "tip"), 5, tensors)


def test_good_values_pass() -> None:
    check_values(split(), ["a.gz"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fare": [1.0, 2.0, 3.0, np.nan, np.inf]},
            "The feature 'fare' is nan in row 3 of a.gz, expected a finite number.\n"
            "Fill in what is missing in preprocessing_fn.",
        ),
        (
            {"hour": [0, 24, -1, 0, 0]},
            "The feature 'hour' is 24 in row 1 of a.gz, expected an id from 0 to 23.\n"
            "Look at how preprocessing_fn makes it.",
        ),
        (
            {"tip": [0.0, 0.0, 0.0, 0.0, -np.inf]},
            "The feature 'tip' is -inf in row 4 of a.gz, expected a finite number.\n"
            "Fill in what is missing in preprocessing_fn.",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_feature_and_row(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError) as caught:
        check_values(split(**changes), ["a.gz"])
    assert str(caught.value) == message


def test_several_files_are_told_by_the_first() -> None:
    with pytest.raises(TrainingError, match=r"in row 0 of a\.gz and 1 more, expected"):
        check_values(split(hour=[99] * 5), ["a.gz", "b.gz"])


def shaped(reduce: Any, label: list[int]) -> None:
    inputs = tf_keras.Input([3], name="numbers")
    model = tf_keras.Model(inputs, tf_keras.layers.Lambda(reduce, name="score")(inputs))
    check_shapes(model, ({"numbers": tf.ones([4, 3])}, tf.zeros(label)))


def test_outputs_have_a_row_for_each_row_and_the_label_s_width() -> None:
    shaped(lambda x: x, [4])
    shaped(lambda x: x, [4, 1])
    shaped(lambda x: x, [4, 3])
    with pytest.raises(TrainingError) as caught:
        shaped(lambda x: tf.reduce_sum(x, axis=0, keepdims=True), [4])
    assert str(caught.value) == (
        "The model's output 'score' has the shape [1, 3] for a batch of 4 rows, expected [4, ...].\n"
        "Keep the first dimension in build_model: reduce over axis 1 and up, and begin a reshape with -1."
    )
    with pytest.raises(TrainingError, match=r"^The model's output 'score' has the shape \[4, 3\], but the label"):
        shaped(lambda x: x, [4, 2])


def fit(active: bool) -> None:
    inputs = tf_keras.Input([2])
    model = tf_keras.Model(inputs, tf.math.log(tf_keras.layers.Dense(1, kernel_initializer="zeros")(inputs)))
    model.compile("sgd", "mse", run_eagerly=True)
    with checked_numerics(active):
        model.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0)


def test_the_operation_that_gives_no_number_is_named_while_it_is_asked_for() -> None:
    with pytest.raises(TrainingError) as caught:
        fit(active=True)
    first, layer, operation, *lines = str(caught.value).splitlines()
    assert first == "Training produced a value that is NaN or infinite."
    assert layer == "Exception encountered when calling layer 'tf.math.log' (type TFOpLambda)."
    assert operation == '!!! Detected Infinity or NaN in output 0 of eagerly-executing op "Log" (# of outputs: 1) !!!'
    assert "  # of -Inf elements: 4" in lines
    assert "Input tensor" not in str(caught.value)
    fit(active=False)


def test_a_step_that_fails_in_a_loop_is_told_with_its_cause() -> None:
    def loss(labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.ensure_shape(outputs, [None, 2]) - labels)

    inputs = tf_keras.Input([3], name="numbers")
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(5, name="score")(inputs))
    model.compile("sgd", loss, steps_per_execution=4)
    rows = ({"numbers": tf.ones([8, 3])}, tf.zeros([8]))
    batches = tf.data.Dataset.from_tensors(rows).repeat()
    with pytest.raises(TrainingError) as caught, explained_step(model, rows):
        model.fit(batches, steps_per_epoch=4, verbose=0)
    message = str(caught.value)
    assert message.startswith("The training step fails: ")
    assert "input [8,5] is not compatible with expected shape [?,2]" in message.splitlines()[0]
    assert "the model's outputs have the shapes {'score': [8, 5]}, and their labels [8]." in message
    assert "before the loop" not in message


def test_other_errors_of_a_training_stay_as_they_are() -> None:
    with pytest.raises(ValueError, match="another") as caught, explained_step(None, ()):
        raise ValueError("another")
    assert type(caught.value) is ValueError
