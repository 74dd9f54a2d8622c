"""What `trainer.debug` checks: every value and operation; and the shapes of the model's outputs, always."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.trainer import interface
from components.trainer.features import Feature
from components.trainer.inputs import Split
from contracts.errors import TrainingError
from contracts.labels import label_features


def check_values(split: Split, files: Sequence[str]) -> None:
    """Checks every value of a split.

    Raises:
        TrainingError: A number is NaN or infinite, or an id is outside its feature's range; names the feature, the row
            (counted from 0 over all files) and the value.
    """
    layout = split.layout
    row = 0
    for rows in split.chunks():
        for feature in layout.features:
            _check_feature(feature, rows[feature.name].numpy(), row, files)
        weights = [layout.sample_weight] if layout.sample_weight else []
        for name in (*label_features(layout.label), *weights):
            _check_finite(name, rows[name].numpy(), row, files)
        row += len(next(iter(rows.values())))


def check_shapes(model: tf_keras.Model, batch: Sequence[Any]) -> None:
    """Checks the shapes of the model's outputs for one batch.

    Args:
        model: Not necessarily compiled.
        batch: `(features, label, ...)`, as the model is fitted with.

    Raises:
        TrainingError: An output does not have a row for each row of the batch, or not the label's width.
    """
    features, labels = batch[:2]
    rows = len(next(iter(features.values())))
    for name, output in interface.called(model, features).items():
        received = output.shape.as_list()
        if not received or received[0] != rows:
            raise TrainingError(
                f"The model's output {name!r} has the shape {received} for a batch of {rows} rows, "
                f"expected [{rows}, ...].",
                "Keep the first dimension in build_model: reduce over axis 1 and up, and begin a reshape with -1.",
            )
        label = labels.get(name) if isinstance(labels, Mapping) else labels
        if label is None:
            continue
        if label.shape.rank > 1 and label.shape[1:] not in (output.shape[1:], [1]):
            raise TrainingError(
                f"The model's output {name!r} has the shape {received}, but the label {label.shape.as_list()}.",
                "Give the last layer in build_model as many units as the label has values.",
            )


@contextmanager
def explained_step(model: tf_keras.Model, rows: Sequence[Any]) -> Iterator[None]:
    """Tells why a training step could not be made.

    AutoGraph runs several steps in a loop, and hides an error in the first of them behind "'outputs' must be defined
    before the loop".

    Args:
        model: Compiled.
        rows: Some rows in the form that `fit` takes, to make the step on.

    Raises:
        TrainingError: The step cannot be made; the message is that of the operation or loss that failed.
    """
    try:
        yield
    except ValueError as error:
        if "before the loop" not in str(error):
            raise
        features, labels, *weights = rows
        try:
            outputs = model(features, training=True)
            model.compute_loss(features, labels, outputs, *weights)
            model.compute_metrics(features, labels, outputs, *(weights or [None]))
        except Exception as cause:
            shapes = {name: output.shape.as_list() for name, output in interface.called(model, features).items()}
            asked = tf.nest.map_structure(lambda label: label.shape.as_list(), labels)
            raise TrainingError(
                f"The training step fails: {_without_device(cause)}\n"
                f"On the first rows, the model's outputs have the shapes {shapes}, and their labels {asked}.",
                "Compare build_model's outputs with the loss and the metrics in compile_arguments.",
            ) from cause
        raise


@contextmanager
def checked_numerics(active: bool) -> Iterator[None]:
    """Ends the training at the first operation that produces a NaN or an infinity, if `active`.

    Raises:
        TrainingError: There was one; the message names the operation and the line of code that created it.
    """
    if not active:
        yield
        return
    tf.debugging.enable_check_numerics()
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise TrainingError(
            f"Training produced a value that is NaN or infinite.\n{_without_tensors(error.message)}",
            "Look at what that operation is given; the whole message with all values is in the log.",
        ) from error
    finally:
        tf.debugging.disable_check_numerics()


def _without_device(error: Exception) -> str:
    """The last line of an error's message, which is what AutoGraph's lines about the user's code lead to."""
    return re.sub(r"\{\{.*?\}\} ?", "", str(error).strip().splitlines()[-1].strip())


def _without_tensors(message: str) -> str:
    """TensorFlow's message without the pages of values of the operation's input tensors."""
    located = re.sub(r"\{\{.*?\}\}", "", message)
    shortened = re.sub(r"\n *Input tensors?.*?(?=\n *: Tensor had)", "", located, flags=re.DOTALL)
    return "\n".join(line for line in shortened.splitlines() if line.strip())


def _check_feature(feature: Feature, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    _check_finite(feature.name, values, first_row, files)
    if feature.num_categories is None:
        return
    out_of_range = (values < 0) | (values >= feature.num_categories)
    if out_of_range.any():
        index = tuple(np.argwhere(out_of_range)[0])
        raise TrainingError(
            f"The feature {feature.name!r} is {values[index]} in row {first_row + index[0]} of {_shown_files(files)}, "
            f"expected an id from 0 to {feature.num_categories - 1}.",
            "Look at how preprocessing_fn makes it.",
        )


def _check_finite(name: str, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    if not np.issubdtype(values.dtype, np.floating) or np.isfinite(values).all():
        return
    index = tuple(np.argwhere(~np.isfinite(values))[0])
    raise TrainingError(
        f"The feature {name!r} is {values[index]} in row {first_row + index[0]} of {_shown_files(files)}, "
        "expected a finite number.",
        "Fill in what is missing in preprocessing_fn.",
    )


def _shown_files(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
