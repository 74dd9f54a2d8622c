"""Class ids against the model that is to tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf
import tf_keras

from components.errors import TrainingError
from components.trainer.inputs import Split

SHOWN_CLASSES = 10
"""Names of classes that a message holds at most."""


def check(model: tf_keras.Model, splits: Mapping[str, Split], class_names: Sequence[str] | None) -> None:
    """Checks that the model has an output for each class, where it learns by a sparse cross-entropy.

    TensorFlow itself stops with the operation's name on a CPU, and trains on with a loss of NaN on a GPU.

    Args:
        model: Compiled.
        splits: What it learns from and is validated with, by name.
        class_names: The classes of the data in the order of their ids, where they are known.

    Raises:
        TrainingError: A label is negative or beyond the last output, or there are not as many outputs as classes.
    """
    if not _is_sparse(model.loss):
        return
    num_classes = model.output_shape[-1]
    if class_names and len(class_names) != num_classes:
        raise TrainingError(
            f"The data have {len(class_names)} classes ({_listed(class_names)}), but the model has {num_classes} "
            "outputs.",
            f"Give the model {len(class_names)} outputs (trainer.params), or look at data.path.",
        )
    for name, split in splits.items():
        lowest, highest = _range(split)
        if lowest < 0 or highest >= num_classes:
            raise TrainingError(
                f"The label {split.layout.label!r} has the ids {lowest} to {highest} in the {name} split, but the "
                f"model has {num_classes} outputs, for the ids 0 to {num_classes - 1}.",
                f"Give the model {highest + 1} outputs (trainer.params), or look at how the label is made."
                if lowest >= 0
                else "Look at how preprocessing_fn makes the label.",
            )


def _is_sparse(loss: object) -> bool:
    functions = (tf_keras.losses.SparseCategoricalCrossentropy, tf_keras.losses.sparse_categorical_crossentropy)
    return loss in ("sparse_categorical_crossentropy", *functions) or isinstance(loss, functions[0])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN_CLASSES else f"{', '.join(names[:SHOWN_CLASSES])}, …"


def _range(split: Split) -> tuple[int, int]:
    lowest, highest = tf.int64.max, tf.int64.min
    for rows in split.chunks():
        labels = tf.cast(rows[split.layout.label], tf.int64)
        lowest = min(lowest, int(tf.reduce_min(labels)))
        highest = max(highest, int(tf.reduce_max(labels)))
    return lowest, highest
