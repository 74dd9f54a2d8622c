"""Models and data for conversion: scikit-learn's digits, and a table of two features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from sklearn.datasets import load_digits
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils
from tfx.types import artifact_utils, standard_artifacts
from tiny_artifacts import new_artifact

from components.autograph import bypass_libraries

TRAIN_ROWS = 1_400
FIXED = tf.io.FixedLenFeature
DIGITS_SPEC = {"image": FIXED([8, 8, 1], tf.int64), "digit": FIXED([], tf.int64)}
TABLE_SPEC = {
    "fare": FIXED([], tf.float32),
    "company": FIXED([], tf.int64),
    "big": FIXED([], tf.int64),
    "weight": FIXED([], tf.float32),
    "tags": tf.io.VarLenFeature(tf.int64),
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images, uint8 [1797, 8, 8, 1], scaled to 0..255, and their digits, int64 [1797]."""
    data = load_digits()
    return (data.images[..., None] * (255 / 16)).round().astype(np.uint8), data.target.astype(np.int64)


def digits_model() -> tf_keras.Model:
    """A convolutional network with over 300,000 parameters, trained for a few seconds."""
    bypass_libraries()
    tf_keras.utils.set_random_seed(1)
    image = tf_keras.Input((8, 8, 1), name="image", dtype="uint8")
    hidden = tf_keras.layers.Rescaling(1 / 255)(tf.cast(image, tf.float32))
    hidden = tf_keras.layers.Conv2D(16, 3, padding="same", activation="relu")(hidden)
    hidden = tf_keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(hidden)
    hidden = tf_keras.layers.Dense(600, "relu")(tf_keras.layers.Flatten()(hidden))
    model = tf_keras.Model(image, tf_keras.layers.Dense(10, "softmax")(hidden))
    model.compile(tf_keras.optimizers.Adam(0.002), "sparse_categorical_crossentropy", steps_per_execution=20)
    images, labels = digits()
    model.fit(images[:TRAIN_ROWS], labels[:TRAIN_ROWS], epochs=8, batch_size=70, verbose=0)
    return model


def save_digits_model(model: tf_keras.Model, folder: Path) -> None:
    """Saves a model with `probabilities` and `class_ids`, and the class names."""

    def predict(image: tf.Tensor) -> dict[str, tf.Tensor]:
        probabilities = model(image, training=False)
        return {"probabilities": probabilities, "class_ids": tf.argmax(probabilities, axis=1)}

    save(folder, predict, {"image": tf.TensorSpec([None, 8, 8, 1], tf.uint8)}, model.variables)
    names = folder / "assets.extra" / "labels.txt"
    names.parent.mkdir()
    names.write_text("".join(f"digit {digit}\n" for digit in range(10)))


def save_table_model(folder: Path) -> None:
    """Saves a logistic regression that is right where fare > 1 means big."""
    weights = tf.Variable(np.array([[8.0], [0.0]], np.float32))

    def predict(fare: tf.Tensor, company: tf.Tensor) -> dict[str, tf.Tensor]:
        features = tf.stack([fare - 1.0, tf.cast(company, tf.float32)], axis=1)
        return {"probability": tf.sigmoid(tf.matmul(features, weights))}

    inputs = {"fare": tf.TensorSpec([None], tf.float32), "company": tf.TensorSpec([None], tf.int64)}
    save(folder, predict, inputs, [weights])


def save(
    folder: Path,
    predict: Callable[..., Mapping[str, tf.Tensor]],
    inputs: Mapping[str, tf.TensorSpec],
    variables: list[tf.Variable],
    signature: str = "predict_transformed",
) -> None:
    """Saves a function of named inputs as a SavedModel."""
    module = tf.Module()
    module.variables_of_model = variables
    named = [tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in inputs.items()]
    module.predict = tf.function(predict, input_signature=named)
    tf.saved_model.save(module, str(folder), signatures={signature: module.predict})


@dataclass(frozen=True)
class Case:
    """The inputs of the TF Lite node as artifacts.

    Attributes:
        saved_model: The SavedModel's folder.
        inputs: The executor's inputs.
        label: The feature that is the label.
    """

    saved_model: Path
    inputs: dict[str, list[Any]] = field(repr=False)
    label: str

    def files(self, split: str) -> list[str]:
        """The transformed files of a split."""
        folder = Path(artifact_utils.get_split_uri(self.inputs["transformed_examples"], split))
        return sorted(map(str, folder.iterdir()))


def new_case(
    folder: Path, save_model: Callable[[Path], None], spec: Mapping[str, Any], label: str, **splits: Mapping[str, Any]
) -> Case:
    """Makes artifacts of a blessed model and of transformed examples; each split has columns by name."""
    model = new_artifact(folder, standard_artifacts.Model)
    saved_model = Path(model.uri, "Format-Serving")
    save_model(saved_model)
    blessing = new_artifact(folder, standard_artifacts.ModelBlessing)
    blessing.set_int_custom_property("blessed", 1)
    graph = new_artifact(folder, standard_artifacts.TransformGraph)
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(dict(spec)))
    metadata_io.write_metadata(metadata, f"{graph.uri}/transformed_metadata")
    names = artifact_utils.encode_split_names(list(splits))
    examples = new_artifact(folder, standard_artifacts.Examples, split_names=names)
    for split, columns in splits.items():
        write_split(Path(examples.uri, f"Split-{split}"), columns)
    inputs = {
        "model": [model],
        "model_blessing": [blessing],
        "transformed_examples": [examples],
        "transform_graph": [graph],
    }
    return Case(saved_model, inputs, label)


def write_split(folder: Path, columns: Mapping[str, Any], shards: int = 2) -> None:
    """Writes gzip TFRecords of the rows, in consecutive shards."""
    folder.mkdir()
    rows = len(next(iter(columns.values())))
    for shard, chosen in enumerate(np.array_split(np.arange(rows), shards)):
        path = folder / f"transformed_examples-{shard:05}-of-{shards:05}.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for row in chosen:
                features = {name: _feature(np.asarray(values[row])) for name, values in columns.items()}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _feature(value: np.ndarray) -> tf.train.Feature:
    if value.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=value.ravel()))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value.ravel().astype(np.int64)))
