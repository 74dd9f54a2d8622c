"""`trainer.debug`: finds the feature, the row and the operation with which training goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.errors import TrainingError
from components.trainer import model_tensors
from components.trainer.features import Feature
from components.trainer.inputs import Split


def check_values(split: Split, files: Sequence[str]) -> None:
    """Looks at every value of a split.

    Raises:
        TrainingError: A number is NaN or infinite, or an id is outside its feature's range; names the feature, the row
            (counted from 0 over all files) and the value.
    """
    layout = split.layout
    row = 0
    for rows in split.chunks():
        for feature in layout.features:
            _check_feature(feature, rows[feature.name].numpy(), row, files)
        for name in filter(None, (layout.label, layout.sample_weight)):
            _check_finite(name, rows[name].numpy(), row, files)
        row += len(rows[layout.label])


def check_shapes(model: tf_keras.Model, batch: Sequence[Any]) -> None:
    """Looks at what the model makes of one batch.

    Args:
        model: Not necessarily compiled.
        batch: `(features, label, ...)`, as the model is fitted with.

    Raises:
        TrainingError: An output does not have a row for each row of the batch, or not the label's width.
    """
    features, label = batch[:2]
    for name, output in model_tensors.outputs_of(model, features).items():
        received, rows = output.shape.as_list(), label.shape[0]
        if not received or received[0] != rows:
            raise TrainingError(
                f"The model's output {name!r} has the shape {received} for a batch of {rows} rows, "
                f"expected [{rows}, ...].",
                "Keep the first dimension in build_model: reduce over axis 1 and up, and begin a reshape with -1.",
            )
        if label.shape.rank > 1 and label.shape[1:] != output.shape[1:] and label.shape[1:] != [1]:
            raise TrainingError(
                f"The model's output {name!r} has the shape {received}, but the label {label.shape.as_list()}.",
                "Give the last layer in build_model as many units as the label has values.",
            )


@contextmanager
def checked_numerics(active: bool) -> Iterator[None]:
    """Lets the first operation that gives a NaN or an infinity end the training, if `active`.

    Raises:
        TrainingError: There was one; the message names the operation and the line of code that made it.
    """
    if not active:
        yield
        return
    tf.debugging.enable_check_numerics()
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise TrainingError(f"Training met a value that is no number:\n{error.message}") from error
    finally:
        tf.debugging.disable_check_numerics()


def _check_feature(feature: Feature, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    _check_finite(feature.name, values, first_row, files)
    if feature.num_categories is None:
        return
    wrong = (values < 0) | (values >= feature.num_categories)
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0])
        raise TrainingError(
            f"The feature {feature.name!r} is {values[index]} in row {first_row + index[0]} of {_shown(files)}, "
            f"expected an id from 0 to {feature.num_categories - 1}.",
            "Look at how preprocessing_fn makes it.",
        )


def _check_finite(name: str, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    if not np.issubdtype(values.dtype, np.floating) or np.isfinite(values).all():
        return
    index = tuple(np.argwhere(~np.isfinite(values))[0])
    raise TrainingError(
        f"The feature {name!r} is {values[index]} in row {first_row + index[0]} of {_shown(files)}, "
        "expected a finite number.",
        "Fill in what is missing in preprocessing_fn.",
    )


def _shown(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
