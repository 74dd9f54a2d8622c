"""The judgement: the SavedModel and the TF Lite model on the same rows.

Accuracy is the fraction of rows whose predicted class is the label: the class of the highest score, or, of a single
probability, whether it is above 0.5. For a model that predicts a number there is no such thing; it is refused before
it is converted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from components.errors import ExportError
from components.tflite.rows import Rows
from components.tflite.saved_model import Array, Arrays

SCORES = ("probabilities", "probability", "scores")
"""Names of the output to judge by where a model has several of floats, the first first."""

BATCH_ROWS = 256


@dataclass(frozen=True)
class Difference:
    """How far an output of the TF Lite model is from the SavedModel's; None where that is not finite.

    Attributes:
        max: The largest absolute difference of any value; of class ids, 1 if any differs.
        mean: The mean absolute difference; of class ids, the fraction that differs.
    """

    max: float | None
    mean: float | None


@dataclass(frozen=True)
class Judgement:
    """What the judge saw.

    Attributes:
        rows: The number of rows.
        accuracy: The TF Lite model's.
        saved_model_accuracy: The SavedModel's.
        differences: By output.
    """

    rows: int
    accuracy: float
    saved_model_accuracy: float
    differences: dict[str, Difference]

    def accepts(self, max_loss: float) -> bool:
        """Whether the TF Lite model's accuracy is at most `max_loss` (a fraction) lower than the SavedModel's."""
        loss = self.saved_model_accuracy - self.accuracy
        return loss <= max_loss or math.isclose(loss, max_loss)


def scores_output(outputs: Mapping[str, tf.TensorSpec]) -> str:
    """The output that holds scores of classes, float [batch, classes], or one probability, [batch] or [batch, 1].

    Raises:
        ExportError: There is none, or several and none of them has a name of `SCORES`.
    """
    found = [name for name, spec in outputs.items() if spec.dtype.is_floating and spec.shape.rank in (1, 2)]
    named = [name for name in SCORES if name in found]
    if named or len(found) == 1:
        return (named or found)[0]
    raise ExportError(
        f"the classes that the model predicts cannot be told from its outputs {_shown(outputs)}; expected one float "
        f"output [batch, classes] or [batch, 1], or one with a name of {', '.join(SCORES)}.",
        "Give the model such an output, or set tflite.quantization to none.",
    )


def is_of_classes(shape: Sequence[int | None]) -> bool:
    """Whether scores of this shape are [batch, classes], and not one probability, [batch] or [batch, 1]."""
    return len(shape) == 2 and shape[1] != 1


def classes(scores: Array) -> Array:
    """Class ids, int64 [batch], of scores [batch, classes] or of one probability, [batch] or [batch, 1]."""
    if is_of_classes(scores.shape):
        return np.asarray(np.argmax(scores, axis=1))
    return np.asarray(scores.reshape(-1) > 0.5, np.int64)


def judge(
    rows: Rows,
    scores: str,
    saved_model: Callable[[Arrays], Arrays],
    tflite_model: Callable[[Arrays], Arrays],
    batch_rows: int | None,
) -> Judgement:
    """Runs both models over all rows.

    Args:
        rows: The `eval` split.
        scores: The output to take the class from.
        saved_model: Takes and returns arrays [batch, ...] by name.
        tflite_model: The same.
        batch_rows: 1 where a model takes single rows only, else None.

    Raises:
        DataError: There are no rows.
    """
    total, right, saved_right = 0, 0, 0
    largest: dict[str, float] = {}
    summed: dict[str, float] = {}
    counted: dict[str, int] = {}
    for inputs, labels in rows.batches(batch_rows or BATCH_ROWS):
        wanted, found = saved_model(inputs), tflite_model(inputs)
        total += len(labels)
        right += int((classes(found[scores]) == labels).sum())
        saved_right += int((classes(wanted[scores]) == labels).sum())
        for name, values in wanted.items():
            difference = _differences(values, found[name])
            # np.maximum and not max: a NaN must not be lost.
            largest[name] = float(np.maximum(largest.get(name, 0.0), difference.max()))
            summed[name] = summed.get(name, 0.0) + float(difference.sum())
            counted[name] = counted.get(name, 0) + difference.size
    differences = {name: Difference(_finite(largest[name]), _finite(summed[name] / counted[name])) for name in largest}
    return Judgement(total, right / total, saved_right / total, differences)


def _differences(wanted: Array, found: Array) -> Array:
    if np.issubdtype(wanted.dtype, np.floating):
        return np.asarray(np.absolute(found.astype(np.float64) - wanted))
    # Class ids are names: how far apart they lie says nothing.
    return np.asarray(found != wanted, np.float64)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(outputs: Mapping[str, tf.TensorSpec]) -> str:
    return ", ".join(f"{name} {spec.dtype.name} {spec.shape.as_list()}" for name, spec in sorted(outputs.items()))
