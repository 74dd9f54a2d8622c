"""A SavedModel whose outputs are easily computed by hand, with a signature for each API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

SCALE = {1: 0.5, 2: 3.0}


class Arithmetic(tf.Module):
    """y = scale * x + 2."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = tf.Variable(scale)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def predict(self, x: Any) -> dict[str, Any]:
        return {"y": self.scale * x + 2.0, "negative": -x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: Any) -> dict[str, Any]:
        return {"outputs": self.scale * self._x(inputs) + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: Any) -> dict[str, Any]:
        x = self._x(inputs)
        classes = tf.tile([["small", "large"]], [tf.shape(x)[0], 1])
        return {"classes": classes, "scores": tf.stack([1.0 - x, x], axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def upper(self, words: Any) -> dict[str, Any]:
        return {"upper": tf.strings.upper(words)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def number(self, words: Any) -> dict[str, Any]:
        return {"number": tf.strings.to_number(words)}

    def _x(self, serialized: Any) -> Any:
        return tf.io.parse_example(serialized, {"x": tf.io.FixedLenFeature([], tf.float32)})["x"]


def save(base_path: Path, version: int = 1) -> Path:
    """Writes the version under `base_path` and returns its folder."""
    module = Arithmetic(SCALE[version])
    path = base_path / str(version)
    signatures = {name: getattr(module, name) for name in ("regress", "classify", "upper", "number")}
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.predict, **signatures})
    return path


def example(x: float) -> tf.train.Example:
    """A tf.Example with the only feature that the model reads."""
    return tf.train.Example(features=tf.train.Features(feature={"x": float_feature(x)}))


def float_feature(x: float) -> tf.train.Feature:
    """A feature with one number."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=[x]))
