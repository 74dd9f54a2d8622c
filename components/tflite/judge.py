"""The judgement: the SavedModel and the TF Lite model, in its interpreter with XNNPACK, on the same rows.

Accuracy is the fraction of rows whose predicted class is the label: the class with the highest score or, for a single
probability, whether it is above 0.5. A model that predicts a number has no accuracy; it is refused before it is
converted.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from components.tflite.saved_model import SIGNATURE, Array, Arrays, Rows
from components.trainer.inference import SCORES, predicted_output
from contracts.errors import ExportError
from contracts.model_reports import OutputDifference

WARM_UPS = 5
INVOCATIONS = 50


class Interpreter:
    """A TF Lite model run with TF Lite's own kernels and, for the ops that XNNPACK knows, XNNPACK's.

    Args:
        model: The model's bytes.
        threads: The number of threads that the kernels use.

    Attributes:
        batch_rows: 1 if the model takes only single rows, None if it takes any number.

    Raises:
        ExportError: The model is fixed to batches of several rows.
    """

    def __init__(self, model: bytes, threads: int) -> None:
        self._model = model
        self._threads = threads
        self._runner = self._new_interpreter().get_signature_runner(SIGNATURE)
        self._details = self._runner.get_input_details()
        self._output_details = self._runner.get_output_details()
        rows = {int(details["shape_signature"][0]) for details in self._details.values()}
        if not rows <= {-1, 1}:
            raise ExportError(
                f"the model's signature {SIGNATURE} takes batches of {max(rows)} rows; expected any number, or 1.",
                "Leave the batch dimension of the model's inputs open.",
            )
        self.batch_rows = 1 if 1 in rows else None

    def __call__(self, inputs: Mapping[str, Array]) -> Arrays:
        """The outputs by name for arrays [batch, ...] by name; input tensors are resized to the batch.

        Inputs and outputs of int8 or uint8 that stand for floats are given and returned as these.
        """
        outputs = self._runner(**{name: _quantized(values, self._details[name]) for name, values in inputs.items()})
        return {name: _dequantized(values, self._output_details[name]) for name, values in outputs.items()}

    def latency_ms(self, row: Mapping[str, Array]) -> float:
        """The median time in milliseconds of invocations with one row [1, ...], after a few warm-up invocations."""
        # A second interpreter, since one that has a runner cannot allocate tensors.
        interpreter = self._new_interpreter()
        for name, details in self._details.items():
            interpreter.resize_tensor_input(details["index"], row[name].shape)
        interpreter.allocate_tensors()
        for name, details in self._details.items():
            interpreter.set_tensor(details["index"], _quantized(row[name], details))
        milliseconds = []
        for _ in range(WARM_UPS + INVOCATIONS):
            began = time.perf_counter()
            interpreter.invoke()
            milliseconds.append((time.perf_counter() - began) * 1000)
        return statistics.median(milliseconds[WARM_UPS:])

    def _new_interpreter(self) -> tf.lite.Interpreter:
        return tf.lite.Interpreter(
            model_content=self._model,
            num_threads=self._threads,
            # This resolver's default delegate is XNNPACK.
            experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN,
        )


def _quantized(values: Array, details: Mapping[str, Any]) -> Array:
    """Floats as the integers of a quantized input, clipped to the range that its scale can express."""
    scale, zero_point = details["quantization"]
    if not scale or not np.issubdtype(values.dtype, np.floating):
        return values
    limits = np.iinfo(details["dtype"])
    clipped = np.clip(np.round(values / scale + zero_point), limits.min, limits.max)
    return np.asarray(clipped.astype(details["dtype"]))


def _dequantized(values: Array, details: Mapping[str, Any]) -> Array:
    """The inverse, for an output."""
    scale, zero_point = details["quantization"]
    if not scale or np.issubdtype(values.dtype, np.floating):
        return values
    return np.asarray((values.astype(np.float32) - zero_point) * np.float32(scale))


BATCH_ROWS = 256


@dataclass(frozen=True)
class Judgement:
    """The result of running both models.

    Attributes:
        rows: The number of rows.
        accuracy: The TF Lite model's accuracy, a fraction.
        saved_model_accuracy: The SavedModel's accuracy, a fraction.
        differences: Output -> how far the two models' values differ.
    """

    rows: int
    accuracy: float
    saved_model_accuracy: float
    differences: dict[str, OutputDifference]

    def accepts(self, max_loss: float) -> bool:
        """Whether the TF Lite model's accuracy is at most `max_loss` (a fraction) lower than the SavedModel's."""
        loss = self.saved_model_accuracy - self.accuracy
        return loss <= max_loss or math.isclose(loss, max_loss)


def scores_output(outputs: Mapping[str, tf.TensorSpec], judged: str = "") -> str:
    """The output with class scores, float [batch, classes], or with one probability, [batch] or [batch, 1].

    Args:
        outputs: What the model serves, by name.
        judged: The output that the Evaluator judges; taken where it holds scores.

    Raises:
        ExportError: There is no such output, or there are several and none has a name in `SCORES`.
    """
    predicted = predicted_output({judged: outputs[judged]} if judged in outputs else {}) or predicted_output(outputs)
    if predicted:
        return predicted
    raise ExportError(
        f"the classes that the model predicts cannot be told from its outputs {_describe_outputs(outputs)}; expected "
        f"one float output [batch, classes] or [batch, 1], or one with a name of {', '.join(SCORES)}.",
        "Give the model such an output, or set tflite.quantization to none.",
    )


def is_of_classes(shape: Sequence[int | None]) -> bool:
    """Whether scores of this shape are [batch, classes], and not one probability, [batch] or [batch, 1]."""
    return len(shape) == 2 and shape[1] != 1


def classes(scores: Array) -> Array:
    """Class ids, int64 [batch], from scores [batch, classes] or from one probability, [batch] or [batch, 1]."""
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
        tflite_model: Likewise.
        batch_rows: 1 if a model takes only single rows, else None.

    Raises:
        DataError: There are no rows.
    """
    total, correct, saved_model_correct = 0, 0, 0
    largest: dict[str, float] = {}
    summed: dict[str, float] = {}
    counted: dict[str, int] = {}
    for inputs, labels in rows.batches(batch_rows or BATCH_ROWS):
        expected, actual = saved_model(inputs), tflite_model(inputs)
        total += len(labels)
        correct += int((classes(actual[scores]) == labels).sum())
        saved_model_correct += int((classes(expected[scores]) == labels).sum())
        for name, values in expected.items():
            difference = _differences(values, actual[name])
            # np.maximum rather than max, so that a NaN is not lost.
            largest[name] = float(np.maximum(largest.get(name, 0.0), difference.max()))
            summed[name] = summed.get(name, 0.0) + float(difference.sum())
            counted[name] = counted.get(name, 0) + difference.size
    differences = {
        name: OutputDifference(_finite(largest[name]), _finite(summed[name] / counted[name])) for name in largest
    }
    return Judgement(total, correct / total, saved_model_correct / total, differences)


def _differences(expected: Array, actual: Array) -> Array:
    if np.issubdtype(expected.dtype, np.floating):
        return np.asarray(np.absolute(actual.astype(np.float64) - expected))
    # Class ids are names: the distance between them means nothing.
    return np.asarray(actual != expected, np.float64)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _describe_outputs(outputs: Mapping[str, tf.TensorSpec]) -> str:
    return ", ".join(f"{name} {spec.dtype.name} {spec.shape.as_list()}" for name, spec in sorted(outputs.items()))
