"""SavedModels of a few operations, whose outputs show which version answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

WORDS = ("apple", "pear", "plum")


class HalfPlus(tf.Module):
    """y = x / 2 + offset."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = tf.Variable(offset)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": x * 0.5 + self.offset, "twice": x + x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def from_examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([], tf.float32)})
        return self(parsed["x"])


class Echo(tf.Module):
    """Returns its inputs, in every type that a client may send."""

    TYPES = (tf.string, tf.bool, tf.uint8, tf.int64, tf.half, tf.bfloat16, tf.double)

    @tf.function(input_signature=[tf.TensorSpec(None, dtype, name=dtype.name) for dtype in TYPES])
    def __call__(self, *values: tf.Tensor) -> dict[str, tf.Tensor]:
        return {f"{value.dtype.name}_out": tf.identity(value) for value in values}


class Slow(tf.Module):
    """Counts to n, with one operation per step."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="n")])
    def __call__(self, n: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"counted": tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0, tf.int64)])[0]}


def write_half_plus(path: Path, offset: float) -> None:
    """Writes y = x / 2 + offset, as `serving_default` of named arrays and `examples` of serialized tf.Examples."""
    module = HalfPlus(offset)
    signatures = {"serving_default": module.__call__, "examples": module.from_examples}
    tf.saved_model.save(module, str(path), signatures=signatures)


def write_module(path: Path, module: tf.Module) -> None:
    """Writes a module whose `__call__` is the default signature."""
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.__call__})


def write_tf1(path: Path, vocabulary: Path) -> None:
    """Writes a model as TensorFlow 1 exported it: a reference variable, a table filled from an asset, every method.

    It looks up the index of an Example's `word` in WORDS; the score is that index times 10.
    """
    vocabulary.write_text("\n".join(WORDS) + "\n")
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        factor = v1.get_variable("factor", initializer=10.0, use_resource=False)
        asset = tf.constant(str(vocabulary))
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        initializer = tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        table = tf.lookup.StaticHashTable(initializer, -1)
        examples = v1.placeholder(tf.string, [None], name="examples")
        words = tf.io.parse_example(examples, {"word": tf.io.FixedLenFeature([], tf.string)})["word"]
        indices = table.lookup(words)
        scores = tf.cast(indices, tf.float32) * factor
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(
            session_of(session, v1),
            [tf.saved_model.SERVING],
            signature_def_map={
                "serving_default": v1.saved_model.classification_signature_def(
                    examples, words, tf.expand_dims(scores, 1)
                ),
                "regress": v1.saved_model.regression_signature_def(examples, scores),
                "predict": v1.saved_model.predict_signature_def({"inputs": examples}, {"index": indices}),
            },
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()


def session_of(session: Any, v1: Any) -> Any:
    """Initializes the session's variables and tables."""
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    return session


def example(**features: float | str) -> bytes:
    """Returns a serialized tf.Example."""
    message = tf.train.Example()
    for name, value in features.items():
        if isinstance(value, str):
            message.features.feature[name].bytes_list.value.append(value.encode())
        else:
            message.features.feature[name].float_list.value.append(value)
    return bytes(message.SerializeToString())


def predict_log(signature: str = "serving_default", **inputs: Any) -> PredictionLog:
    """Returns a recorded Predict request."""
    log = PredictionLog()
    log.predict_log.request.model_spec.signature_name = signature
    for name, value in inputs.items():
        log.predict_log.request.inputs[name].CopyFrom(tf.make_tensor_proto(np.asarray(value)))
    return log


def write_warm_up(path: Path, records: list[bytes]) -> None:
    """Writes warm-up requests into a SavedModel."""
    file = path / "assets.extra" / "tf_serving_warmup_requests"
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in records:
            writer.write(record)
