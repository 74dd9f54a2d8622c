"""SavedModels for tests of batching: the outputs show how large the batch was, and which request was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


class Rows(tf.Module):
    """Sums the values of each row times a factor, and returns how many rows ran together."""

    def __init__(self, factor: float, words: Path) -> None:
        super().__init__()
        self.factor = tf.Variable(factor)
        initializer = tf.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def total(self, x: Any) -> dict[str, Any]:
        rows = tf.shape(x)[0]
        return {"sum": tf.reduce_sum(x, axis=1) * self.factor, "rows": tf.fill([rows], rows)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look_up(self, words: Any) -> dict[str, Any]:
        return {"index": self.table.lookup(words)}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32, name="x"), tf.TensorSpec([None], tf.float32, name="y")]
    )
    def add(self, x: Any, y: Any) -> dict[str, Any]:
        return {"z": x + y}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def positive(self, x: Any) -> dict[str, Any]:
        """Returns fewer rows than it gets."""
        return {"positive": tf.boolean_mask(x, x > 0)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def mean(self, x: Any) -> dict[str, Any]:
        """Returns no rows at all."""
        return {"mean": tf.reduce_mean(x)}


def write_rows(path: Path, factor: float) -> Path:
    """Writes a model that sums rows and looks words up; returns its folder."""
    words = path.parent / "words.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    words.write_text("apple\npear\n")
    module = Rows(factor, words)
    signatures = {name: getattr(module, name) for name in ("look_up", "add", "positive", "mean")}
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.total} | signatures)
    return path


def write_frozen(path: Path) -> Path:
    """Writes a model frozen by TensorFlow 1, y = x @ w + a loop's count, w a large constant; returns its folder."""
    v1 = tf.compat.v1
    weights = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.disable_control_flow_v2()
        x = v1.placeholder(tf.float32, [None, 64], name="x")
        count = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        y = tf.matmul(x, tf.constant(weights)) + tf.cast(count, tf.float32)
        v1.enable_control_flow_v2()
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
    return path


def write_fed(path: Path) -> Path:
    """Writes a model whose signature leaves out a placeholder that its output needs; returns its folder."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x, rate = v1.placeholder(tf.float32, [None], name="x"), v1.placeholder(tf.float32, [], name="rate")
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": x * rate})
    return path
