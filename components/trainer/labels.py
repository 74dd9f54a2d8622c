"""Checks of the labels before anything is trained: their values, their classes, and the model's outputs for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
import tf_keras

from components.trainer import heads
from components.trainer.inputs import Layout, Split
from contracts.errors import TrainingError
from contracts.labels import label_features

SHOWN_CLASSES = 10
"""The most class names or values in a message."""

MAX_VALUES = 1000
"""A label with more values than that is not counted by value."""


@dataclass
class Values:
    """The values of a label in a split.

    Attributes:
        rows: The number of rows.
        not_finite: The rows with a value that is NaN or infinite.
        lowest: The lowest finite value.
        highest: The highest finite value.
        constant: Whether all rows have the same values.
        counts: The rows by value of a label of one number a row; empty beyond `MAX_VALUES` values.
    """

    rows: int = 0
    not_finite: int = 0
    lowest: float = float("inf")
    highest: float = float("-inf")
    constant: bool = True
    counts: Counter[float] = field(default_factory=Counter)


Labels = Mapping[str, Mapping[str, Values]]
"""Values by label and split."""


def check_kinds(layout: Layout) -> None:
    """Checks that every row has its labels as numbers, as many as the others.

    Raises:
        TrainingError: A label is text, or not every row has the same number of values.
    """
    for label in label_features(layout.label):
        spec = layout.spec[label]
        if not isinstance(spec, tf.io.FixedLenFeature):
            raise TrainingError(
                f"The label {label!r} may be missing from a row, or have several values; expected it in every row.",
                "Return a dense tensor of numbers for it from preprocessing_fn, and leave rows without a label out.",
            )
        if spec.dtype == tf.string:
            raise TrainingError(
                f"The label {label!r} is text, expected numbers, or ids of classes.",
                "Give each text an id in preprocessing_fn, as tft.compute_and_apply_vocabulary does.",
            )


def read_labels(splits: Mapping[str, Split]) -> Labels:
    """The values of every label in every split."""
    names = label_features(next(iter(splits.values())).layout.label)
    return {label: {name: _read(split, label) for name, split in splits.items()} for label in names}


def _read(split: Split, label: str) -> Values:
    values, first, counted = Values(), None, True
    for rows in split.chunks():
        column = rows[label].numpy().reshape(len(rows[label]), -1)
        finite = np.isfinite(column).all(axis=1)
        first = column[:1] if first is None else first
        values.rows += len(column)
        values.not_finite += int((~finite).sum())
        values.constant &= bool((column == first).all())
        if finite.any():
            values.lowest = min(values.lowest, column[finite].min().item())
            values.highest = max(values.highest, column[finite].max().item())
        if counted and column.shape[1] == 1:
            found, counts = np.unique(column[finite], return_counts=True)
            values.counts.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
            counted = len(values.counts) <= MAX_VALUES
    if not counted:
        values.counts.clear()
    return values


def check_values(labels: Labels, class_names: Sequence[str] | None) -> None:
    """Checks that every row has a label, and that the labels differ.

    Args:
        labels: See `read_labels`.
        class_names: The classes of the data in the order of their ids, if they are known.

    Raises:
        TrainingError: A label is missing or not finite in some rows, or the same in all rows of a split.
    """
    for label, by_split in labels.items():
        bad = {name: values for name, values in by_split.items() if values.not_finite}
        if bad:
            where = " and ".join(f"{v.not_finite:,} of {v.rows:,} rows of the {name} split" for name, v in bad.items())
            raise TrainingError(
                f"The label {label!r} is missing, or not a finite number, in {where}.",
                "Leave these rows out of the data (data.on_missing_label does it by the raw column), or look at how "
                "preprocessing_fn makes the label.",
            )
        for name, values in by_split.items():
            if values.constant:
                seen = "; ".join(f"{other}: {_counted(v, class_names)}" for other, v in by_split.items())
                raise TrainingError(
                    f"The label {label!r} is the same in all {values.rows:,} rows of the {name} split ({seen}): "
                    "there is nothing to learn, or nothing to judge by.",
                    "Look at how preprocessing_fn makes it, at the data, and at how data.splits or data.split_by "
                    "divide them.",
                )


def _counted(values: Values, class_names: Sequence[str] | None) -> str:
    """The rows by value, the most frequent ones: `0 in 4,000 rows, 1 in 966`."""
    if not values.counts:
        return f"{values.lowest:g} to {values.highest:g} in {values.rows:,} rows"
    shown = [
        f"{_named(value, class_names)} in {count:,} rows" for value, count in values.counts.most_common(SHOWN_CLASSES)
    ]
    return ", ".join(shown) + (", …" if len(values.counts) > len(shown) else "")


def _named(value: float, class_names: Sequence[str] | None) -> str:
    is_id = class_names is not None and value == int(value) and 0 <= value < len(class_names)
    return f"{value:g} ({class_names[int(value)]})" if class_names is not None and is_id else f"{value:g}"


def check_outputs(model: tf_keras.Model, split: Split, labels: Labels, class_names: Sequence[str] | None) -> None:
    """Checks the labels against the model's outputs, where their loss is a cross-entropy.

    TensorFlow itself stops with the operation's name on a CPU, and keeps training with a loss of NaN on a GPU.

    Args:
        model: Compiled.
        split: Any of the splits.
        labels: See `read_labels`.
        class_names: The classes of the data in the order of their ids, if they are known.

    Raises:
        TrainingError: A label is negative or beyond the last output, the numbers of outputs and classes differ, or a
            label of a binary cross-entropy is not within 0 and 1.
    """
    label = split.layout.label
    for head in heads.heads(model, label):
        if head.label is None:
            continue
        if _is_loss(head.loss, SPARSE):
            units = "outputs" if isinstance(label, str) else f"units in its output {head.name!r}"
            _check_ids(head.label, head.output.shape[-1], units, labels[head.label], class_names)
            continue
        # A loss of the recipe's own may compare otherwise, such as each member of an ensemble with the one label.
        if isinstance(head.loss, str) or type(head.loss).__module__.startswith("tf_keras."):
            _check_width(head, split.layout.spec[head.label])
        if _is_loss(head.loss, BINARY):
            _check_probabilities(head.label, labels[head.label], class_names)


SPARSE = ("sparse_categorical_crossentropy", tf_keras.losses.SparseCategoricalCrossentropy)
BINARY = ("binary_crossentropy", tf_keras.losses.BinaryCrossentropy)


def _is_loss(loss: object, kind: tuple[str, type]) -> bool:
    name, loss_class = kind
    return loss in (name, loss_class.__name__, getattr(tf_keras.losses, name)) or isinstance(loss, loss_class)


def _check_width(head: heads.Head, spec: tf.io.FixedLenFeature) -> None:
    """Checks that an output has as many numbers as its label; Keras's own error about it is lost in a loop."""
    asked, width = tf.TensorShape(spec.shape).num_elements(), head.output.shape[1:].num_elements()
    if width is not None and asked != width:
        shape = [None, *head.output.shape[1:]]
        raise TrainingError(
            f"The model's output {head.name!r} has the shape {shape}, {width} numbers a row, but the label "
            f"{head.label!r} has {asked} a row, and the loss {_name_of(head.loss)} compares one with one.",
            f"Give the last layer in build_model {asked} units; for ids of classes take the loss "
            "sparse_categorical_crossentropy.",
        )


def _name_of(loss: object) -> str:
    return loss if isinstance(loss, str) else type(loss).__name__


def _check_probabilities(label: str, by_split: Mapping[str, Values], class_names: Sequence[str] | None) -> None:
    for name, values in by_split.items():
        if values.lowest < 0 or values.highest > 1:
            raise TrainingError(
                f"The label {label!r} is {_counted(values, class_names)} of the {name} split, but the model's loss is "
                "a binary cross-entropy, for a label of 0 or 1.",
                "Make the label 0 or 1 in preprocessing_fn, or give the model an output for each class and the loss "
                "sparse_categorical_crossentropy.",
            )


def _check_ids(
    label: str, num_classes: int, units: str, by_split: Mapping[str, Values], class_names: Sequence[str] | None
) -> None:
    """Checks the ids of one label; `units` names, for messages, the outputs of which the model has `num_classes`."""
    if class_names and len(class_names) != num_classes:
        raise TrainingError(
            f"The data have {len(class_names)} classes ({_listed_classes(class_names)}), but the model has "
            f"{num_classes} {units}.",
            f"Give the model {len(class_names)} {units} (trainer.params), or look at data.path.",
        )
    for name, values in by_split.items():
        lowest, highest = int(values.lowest), int(values.highest)
        if lowest < 0 or highest >= num_classes:
            raise TrainingError(
                f"The label {label!r} has the ids {lowest} to {highest} in the {name} split, but the "
                f"model has {num_classes} {units}, for the ids 0 to {num_classes - 1}.",
                f"Give the model {highest + 1} {units} (trainer.params), or look at how the label is made."
                if lowest >= 0
                else "Look at how preprocessing_fn makes the label.",
            )


def _listed_classes(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN_CLASSES else f"{', '.join(names[:SHOWN_CLASSES])}, …"
