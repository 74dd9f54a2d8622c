"""The same features by TFT's analyzers and of rows in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from components.tabular.analysis import InMemory
from components.tabular.features import Categories, Numbers, Texts, transformed
from components.tabular.labels import Classes
from components.tabular.tensors import RawFeature
from components.trainer.features import from_schema

ROWS = 400
COLUMNS = [Numbers(["size", "count"]), Categories(["color", "shape"]), Texts(["note"], length=3)]
LABEL = Classes("label", ["no", "yes"])
SPEC = {
    "size": tf.io.VarLenFeature(tf.float32),
    "count": tf.io.FixedLenFeature([], tf.int64),
    "color": tf.io.VarLenFeature(tf.string),
    "shape": tf.io.FixedLenFeature([], tf.string),
    "note": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.string),
}


def preprocessing_fn(inputs: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
    """A recipe's."""
    return transformed(inputs, COLUMNS, LABEL)


def rows() -> list[dict[str, object]]:
    """Rows with gaps; every word has another frequency, so that its rank is certain."""
    draw = np.random.default_rng(0)
    return [
        {
            "size": [] if row % 10 == 0 else [float(draw.normal())],
            "count": row % 7,
            "color": [] if row % 10 == 0 else ["red" if row % 5 < 4 else "blue"],
            "shape": "round" if row % 8 == 0 else "long",
            "note": "very good" if row % 3 == 0 else "good",
            "label": "yes" if row % 2 else "no",
        }
        for row in range(ROWS)
    ]


def in_memory(data: list[dict[str, object]]) -> tuple[dict[str, np.ndarray], InMemory]:
    """The features without TFT."""

    def filled(name: str, missing: object) -> list[object]:
        return [(row[name] or [missing])[0] for row in data]  # type: ignore[index]

    inputs = {name: tf.constant([row[name] for row in data]) for name in ("shape", "note", "label")}
    inputs["count"] = tf.constant([row["count"] for row in data], tf.int64)
    inputs["size"] = tf.constant(filled("size", float("nan")), tf.float32)
    inputs["color"] = tf.constant(filled("color", ""))
    analysis = InMemory()
    return {name: tensor.numpy() for name, tensor in transformed(inputs, COLUMNS, LABEL, analysis).items()}, analysis


def test_both_ways_give_the_same_features(tmp_path: Path) -> None:
    data = rows()
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(SPEC))
    folder = str(tmp_path / "graph")
    with tft_beam.Context(temp_dir=str(tmp_path / "tmp"), desired_batch_size=ROWS):
        (by_row, _), transform_fn = (data, metadata) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
        _ = transform_fn | tft_beam.WriteTransformFn(folder)
    by_pipeline = {name: np.stack([row[name] for row in by_row]) for name in by_row[0]}
    expected, analysis = in_memory(data)
    for name in ("category_ids", "word_ids", "label"):
        np.testing.assert_array_equal(by_pipeline[name], expected[name])
    # TFT's quantiles are approximate.
    np.testing.assert_allclose(by_pipeline["number_ranks"], expected["number_ranks"], atol=0.03)
    np.testing.assert_allclose(by_pipeline["number_values"], expected["number_values"], atol=0.1)

    schema = tft.TFTransformOutput(folder).transformed_metadata.schema
    sizes = {feature.name: feature.num_categories for feature in from_schema(schema, "label")}
    assert sizes == {"number_values": None, "number_ranks": None, **analysis.sizes}
