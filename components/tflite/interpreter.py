"""The TF Lite interpreter with XNNPACK, called like the SavedModel."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import tensorflow as tf

from components.errors import ExportError
from components.tflite.saved_model import SIGNATURE, Array, Arrays

WARM_UPS = 5
INVOCATIONS = 50


class Interpreter:
    """A TF Lite model with TF Lite's own kernels and, for the ops that it knows, XNNPACK's.

    Args:
        model: The model's bytes.
        threads: Threads of the kernels.

    Attributes:
        batch_rows: 1 where the model takes single rows only, or None where it takes any number.

    Raises:
        ExportError: The model is fixed to batches of several rows.
    """

    def __init__(self, model: bytes, threads: int) -> None:
        self._model = model
        self._threads = threads
        self._runner = self._new().get_signature_runner(SIGNATURE)
        self._details = self._runner.get_input_details()
        rows = {int(details["shape_signature"][0]) for details in self._details.values()}
        if not rows <= {-1, 1}:
            raise ExportError(
                f"the model's signature {SIGNATURE} takes batches of {max(rows)} rows; expected any number, or 1.",
                "Leave the batch dimension of the model's inputs open.",
            )
        self.batch_rows = 1 if 1 in rows else None

    def __call__(self, inputs: Mapping[str, Array]) -> Arrays:
        """The outputs by name for arrays [batch, ...] by name; input tensors are resized to the batch."""
        return dict(self._runner(**inputs))

    def latency_ms(self, row: Mapping[str, Array]) -> float:
        """The median time, in milliseconds, of invocations with one row [1, ...], after a few to warm up."""
        # Another one, for tensors of an interpreter cannot be allocated while it has a runner.
        interpreter = self._new()
        for name, details in self._details.items():
            interpreter.resize_tensor_input(details["index"], row[name].shape)
        interpreter.allocate_tensors()
        for name, details in self._details.items():
            interpreter.set_tensor(details["index"], row[name])
        taken = []
        for _ in range(WARM_UPS + INVOCATIONS):
            began = time.perf_counter()
            interpreter.invoke()
            taken.append((time.perf_counter() - began) * 1000)
        return statistics.median(taken[WARM_UPS:])

    def _new(self) -> tf.lite.Interpreter:
        return tf.lite.Interpreter(
            model_content=self._model,
            num_threads=self._threads,
            # The resolver whose default delegate is XNNPACK.
            experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN,
        )
