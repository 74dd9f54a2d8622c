"""Checks of the data against the model: class ids, and with `trainer.debug` every value and operation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.trainer import heads, tensors
from components.trainer.features import Feature
from components.trainer.inputs import Split
from contracts.errors import TrainingError
from contracts.labels import label_features

SHOWN_CLASSES = 10
"""The most class names in a message."""


def check_labels(model: tf_keras.Model, splits: Mapping[str, Split], class_names: Sequence[str] | None) -> None:
    """Checks that the model has an output for each class, where its loss is a sparse cross-entropy.

    TensorFlow itself stops with the operation's name on a CPU, and keeps training with a loss of NaN on a GPU.

    Args:
        model: Compiled.
        splits: The training and validation splits, by name.
        class_names: The classes of the data in the order of their ids, if they are known.

    Raises:
        TrainingError: A label is negative or beyond the last output, or the numbers of outputs and classes differ.
    """
    label = next(iter(splits.values())).layout.label
    for head in heads.heads(model, label):
        if head.label is not None and _is_sparse_loss(head.loss):
            units = "outputs" if isinstance(label, str) else f"units in its output {head.name!r}"
            _check_ids(head.label, head.output.shape[-1], units, splits, class_names)


def _check_ids(
    label: str, num_classes: int, units: str, splits: Mapping[str, Split], class_names: Sequence[str] | None
) -> None:
    """Checks the ids of one label; `units` names, for messages, the outputs of which the model has `num_classes`."""
    if class_names and len(class_names) != num_classes:
        raise TrainingError(
            f"The data have {len(class_names)} classes ({_listed_classes(class_names)}), but the model has "
            f"{num_classes} {units}.",
            f"Give the model {len(class_names)} {units} (trainer.params), or look at data.path.",
        )
    for name, split in splits.items():
        lowest, highest = _label_range(split, label)
        if lowest < 0 or highest >= num_classes:
            raise TrainingError(
                f"The label {label!r} has the ids {lowest} to {highest} in the {name} split, but the "
                f"model has {num_classes} {units}, for the ids 0 to {num_classes - 1}.",
                f"Give the model {highest + 1} {units} (trainer.params), or look at how the label is made."
                if lowest >= 0
                else "Look at how preprocessing_fn makes the label.",
            )


def _is_sparse_loss(loss: object) -> bool:
    functions = (tf_keras.losses.SparseCategoricalCrossentropy, tf_keras.losses.sparse_categorical_crossentropy)
    return loss in ("sparse_categorical_crossentropy", *functions) or isinstance(loss, functions[0])


def _listed_classes(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN_CLASSES else f"{', '.join(names[:SHOWN_CLASSES])}, …"


def _label_range(split: Split, label: str) -> tuple[int, int]:
    lowest, highest = tf.int64.max, tf.int64.min
    for rows in split.chunks():
        labels = tf.cast(rows[label], tf.int64)
        lowest = min(lowest, int(tf.reduce_min(labels)))
        highest = max(highest, int(tf.reduce_max(labels)))
    return lowest, highest


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
    for name, output in tensors.model_outputs(model, features).items():
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
