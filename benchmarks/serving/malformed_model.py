"""The model that malformed requests are sent to: numbers, strings, several inputs and parsed Examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf


class Small(tf.Module):
    """A signature of each kind; y = x / 2 + 2."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def predict(self, x: Any) -> dict[str, Any]:
        return {"y": x * 0.5 + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def upper(self, words: Any) -> dict[str, Any]:
        return {"upper": tf.strings.upper(words), "raw_bytes": words}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def number(self, words: Any) -> dict[str, Any]:
        return {"number": tf.strings.to_number(words)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.bool, "flag"),
            tf.TensorSpec([None], tf.uint8, "small"),
            tf.TensorSpec([None], tf.int64, "large"),
            tf.TensorSpec([None], tf.double, "double"),
        ]
    )
    def types(self, flag: Any, small: Any, large: Any, double: Any) -> dict[str, Any]:
        return {"sum": tf.where(flag, double + tf.cast(small, tf.double), tf.cast(large, tf.double))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: Any) -> dict[str, Any]:
        return {"outputs": self._x(inputs) * 0.5 + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: Any) -> dict[str, Any]:
        x = self._x(inputs)
        return {"scores": tf.stack([1.0 - x, x], axis=1)}

    def _x(self, serialized: Any) -> Any:
        return tf.io.parse_example(serialized, {"x": tf.io.FixedLenFeature([], tf.float32)})["x"]


def save(path: Path) -> None:
    """Writes the model as a SavedModel."""
    module = Small()
    names = ("upper", "number", "types", "regress", "classify")
    signatures = {name: getattr(module, name) for name in names}
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.predict, **signatures})
