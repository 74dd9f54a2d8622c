"""The taxi recipe's work without a pipeline, as one plain script: `python -m benchmarks.plain_taxi FOLDER [CSV]`.

It gives the lower bound of the pipeline's time: the same rows, features, model, steps, metrics and SavedModel, and
nothing else. No artifacts, no cache, no metadata, no TFRecords between the steps, no TFX and no TFMA.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
import tf_keras
from sklearn.metrics import roc_auc_score
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx_bsl.tfxio import tensor_representation_util as representations
from tfx_bsl.tfxio.tensor_adapter import TensorAdapter, TensorAdapterConfig

from components.autograph import bypass_libraries
from components.example_gen import files
from components.trainer import export, features
from pipeline.plan import project, recipe
from recipes.taxi import model as taxi_model
from recipes.taxi.features import preprocessing_fn

SETTINGS = recipe.load("taxi").settings
TYPES = {schema_pb2.INT: pa.int64(), schema_pb2.FLOAT: pa.float32(), schema_pb2.BYTES: pa.binary()}
Columns: TypeAlias = dict[str, Any]
"""Name -> tensor of shape [rows]."""


def main(folder: Path, path: str | None = None) -> None:
    """Reads, checks, transforms, trains, evaluates and saves; all outputs go to `folder`.

    Args:
        folder: An empty folder.
        path: The CSV file; by default the recipe's.
    """
    bypass_libraries()
    tf_keras.utils.set_random_seed(SETTINGS.trainer.seed)
    schema = tfdv.load_schema_text(str(project.ENGINE / "schemas" / "taxi" / "schema.pbtxt"))
    splits = read_splits(path or files.resolve(SETTINGS.data, project.ENGINE).files[0], schema)
    check(splits, schema, folder)
    adapter = TensorAdapterConfig(splits["train"].schema, representations.InferTensorRepresentationsFromSchema(schema))
    transform = analyze(splits["train"], adapter, schema, folder)
    layer = transform.transform_features_layer()
    transformed = {name: dict(layer(TensorAdapter(adapter).ToBatchTensors(rows))) for name, rows in splits.items()}
    model = train(transformed, transform)
    metrics = evaluate(model, transformed["eval"], splits["eval"])
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2), encoding="utf-8")
    export.save(model, transform, SETTINGS.judged_label, str(folder / "model"))


def read_splits(path: str | Path, schema: schema_pb2.Schema) -> dict[str, pa.RecordBatch]:
    """The CSV's rows randomly split into `train` (two thirds) and `eval`, with the list columns of TFT and TFDV."""
    types = {feature.name: TYPES[feature.type] for feature in schema.feature}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    table = pa.csv.read_csv(path, convert_options=options).select(list(types))
    rows = pa.RecordBatch.from_arrays([as_lists(column.combine_chunks()) for column in table.columns], list(types))
    in_train = np.random.default_rng(SETTINGS.trainer.seed).random(len(rows)) < 2 / 3
    return {"train": rows.filter(pa.array(in_train)), "eval": rows.filter(pa.array(~in_train))}


def as_lists(column: pa.Array) -> pa.LargeListArray:
    """A list column with one list per row: of one value, or null where it is missing."""
    offsets = np.concatenate([[0], np.cumsum(column.is_valid().to_numpy(zero_copy_only=False))])
    starts = pc.if_else(column.is_valid(), pa.array(offsets[:-1]), None)
    return pa.LargeListArray.from_arrays(pa.concat_arrays([starts, pa.array(offsets[-1:])]), column.drop_null())


def check(splits: dict[str, pa.RecordBatch], schema: schema_pb2.Schema, folder: Path) -> None:
    """Writes each split's statistics, and stops if they contradict the schema."""
    for name, rows in splits.items():
        statistics = stats_impl.generate_statistics_in_memory(rows, tfdv.StatsOptions())
        tfdv.write_stats_text(statistics, str(folder / f"statistics-{name}.pbtxt"))
        anomalies = tfdv.validate_statistics(statistics, schema, environment="TRAINING")
        if anomalies.anomaly_info:
            raise SystemExit(f"{name}: {anomalies}")


def analyze(
    rows: pa.RecordBatch, adapter: TensorAdapterConfig, schema: schema_pb2.Schema, folder: Path
) -> tft.TFTransformOutput:
    """Runs TFT's analysis of the training rows with the recipe's `preprocessing_fn`."""
    path = str(folder / "transform")
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp"), force_tf_compat_v1=False):
        source = pipeline | beam.Create([rows])
        (source, adapter) | tft_beam.AnalyzeDataset(preprocessing_fn) | tft_beam.WriteTransformFn(path)
    raw = str(Path(path, tft.TFTransformOutput.RAW_METADATA_DIR))
    metadata_io.write_metadata(dataset_metadata.DatasetMetadata(schema), raw)
    return tft.TFTransformOutput(path)


def train(transformed: dict[str, Columns], transform: tft.TFTransformOutput) -> tf_keras.Model:
    """Trains the recipe's model for the recipe's steps on shuffled batches held in memory."""
    trainer = SETTINGS.trainer
    inputs = features.from_schema(transform.transformed_metadata.schema, SETTINGS.judged_label)
    model = taxi_model.build_model(inputs, trainer.params)
    model.compile(**taxi_model.compile_arguments(trainer.params), steps_per_execution=trainer.steps_per_execution)
    columns = transformed["train"]
    rows = len(columns[SETTINGS.judged_label])
    # As many whole passes over the rows as the recipe's steps make, so that validation runs equally often.
    epochs = math.ceil((trainer.train_steps or 0) / (rows // trainer.batch_size))
    order = tf.data.Dataset.range(rows).shuffle(rows, seed=trainer.seed).repeat()
    batches = order.batch(trainer.batch_size, drop_remainder=True).map(
        lambda chosen: without_label({name: tf.gather(column, chosen) for name, column in columns.items()})
    )
    model.fit(
        batches.prefetch(tf.data.AUTOTUNE),
        epochs=epochs,
        steps_per_epoch=math.ceil((trainer.train_steps or 0) / epochs),
        validation_data=tf.data.Dataset.from_tensors(without_label(transformed["eval"])),
        validation_steps=1,
        verbose=2,
    )
    return model


def without_label(columns: Columns) -> tuple[Columns, Any]:
    """The features and the label."""
    label = SETTINGS.judged_label
    return {name: column for name, column in columns.items() if name != label}, columns[label]


def evaluate(model: tf_keras.Model, transformed: Columns, rows: pa.RecordBatch) -> dict[str, dict[str, float]]:
    """AUC, accuracy and calibration, overall and for each value of the recipe's slices."""
    inputs, labels = without_label(transformed)
    scores, labels = model(inputs, training=False).numpy()[:, 0], labels.numpy()
    metrics = {"overall": measures(labels, scores)}
    for (feature,) in SETTINGS.evaluator.slices:
        values = rows.column(rows.schema.get_field_index(feature)).flatten().to_numpy(zero_copy_only=False)
        for value in np.unique(values):
            metrics[f"{feature}={as_text(value)}"] = measures(labels[values == value], scores[values == value])
    return metrics


def as_text(value: Any) -> str:
    """A raw value as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def measures(labels: Any, scores: Any) -> dict[str, float]:
    """The recipe's metrics for some rows; without AUC if they have only one class."""
    measured = {
        "rows": float(len(labels)),
        "BinaryAccuracy": float(np.mean((scores > 0.5) == labels)),
        "Calibration": float(scores.sum() / max(labels.sum(), 1)),
    }
    return measured | ({"AUC": float(roc_auc_score(labels, scores))} if len(set(labels)) == 2 else {})


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
