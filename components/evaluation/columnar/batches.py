"""Batches of rows with the predictions of all models, in the form of TFMA's extracts, made on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.proto import config_pb2
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from components.statistics.columns import batch_rows, mean_bytes, read_serialized

BATCH_ROWS = 4096
"""The most rows of a batch: enough that the cost of a call vanishes."""

BATCH_BYTES = 4 * 2**20
"""About how many bytes of serialized rows a batch has: what the model makes of images or texts is far larger."""


Extracts: TypeAlias = dict[str, Any]
Signature: TypeAlias = Any
"""A concrete function of a SavedModel: TensorFlow ships no types."""


@dataclass(frozen=True)
class Model:
    """A model to evaluate.

    Attributes:
        predict: Serialized tf.Examples to predictions.
        transform_label: Serialized tf.Examples to labels by name.
        loaded: The SavedModel, to whose variables its functions refer only weakly.
    """

    predict: Signature
    transform_label: Signature
    loaded: Any

    @classmethod
    def load(cls, folder: str, spec: config_pb2.ModelSpec) -> Model:
        """Loads a SavedModel.

        Args:
            folder: The SavedModel.
            spec: Names the signatures.
        """
        loaded = tf.saved_model.load(folder)
        [transform_label] = spec.preprocessing_function_names
        return cls(loaded.signatures[spec.signature_name], loaded.signatures[transform_label], loaded)


def read(files: Sequence[str], features: Sequence[str]) -> Iterator[Extracts]:
    """Yields serialized rows, and those of their features that are asked for.

    Args:
        files: TFRecord files of tf.Examples, gzip.
        features: The raw features that slices are formed by or that hold weights.
    """
    decoder = _Decoder(features)
    for serialized in read_serialized(files, batch_rows(mean_bytes(files), BATCH_ROWS, BATCH_BYTES)):
        yield {constants.INPUT_KEY: serialized, constants.FEATURES_KEY: decoder.columns(serialized)}


def predicted(rows: Extracts, models: Mapping[str, Model], label: str) -> Extracts:
    """Returns the rows with the labels and predictions of each model, by the models' names.

    Args:
        rows: As `read` yields them.
        models: By name; a single one's is empty, and what it makes is not put under a name.
        label: The transformed feature that is the label.
    """
    serialized = tf.constant(rows[constants.INPUT_KEY], tf.string)
    labels = {name: _values(model.transform_label(serialized)) for name, model in models.items()}
    predictions = {name: _single(_values(model.predict(serialized))) for name, model in models.items()}
    if list(models) == [""]:
        transformed: Any = labels[""]
        return rows | {
            constants.TRANSFORMED_FEATURES_KEY: transformed,
            constants.LABELS_KEY: transformed[label],
            constants.PREDICTIONS_KEY: predictions[""],
        }
    return rows | {
        constants.TRANSFORMED_FEATURES_KEY: labels,
        constants.LABELS_KEY: {name: of_model[label] for name, of_model in labels.items()},
        constants.PREDICTIONS_KEY: predictions,
    }


def _values(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(tensor) for name, tensor in outputs.items()}


def _value(tensor: Any) -> Any:
    if isinstance(tensor, tf.SparseTensor):
        return tf.compat.v1.SparseTensorValue(*(part.numpy() for part in (tensor.indices, tensor.values, tensor.shape)))
    return tensor.numpy()


def _single(outputs: dict[str, Any]) -> Any:
    """TFMA takes a single output without its name."""
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs


class _Decoder:
    """Decodes some features of serialized rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._spec: dict[str, tf.io.RaggedFeature] = {}

    def columns(self, serialized: Any) -> dict[str, Any]:
        """Columns by name: an array [rows, 1] where each row has one value, else sparse, in the order of the rows."""
        if len(self._spec) == len(self._names):
            parsed = tf.io.parse_example(serialized, self._spec) if self._spec else {}
            return {
                name: _column(values.value_rowids().numpy(), values.flat_values.numpy(), len(serialized))
                for name, values in parsed.items()
            }
        # Slower, but it finds out the types; a feature has none before it has a value.
        batch = ExamplesToRecordBatchDecoder().DecodeBatch(serialized.tolist())
        present = [name for name in self._names if name in batch.schema.names]
        typed = {name: batch.column(name) for name in present if not pa.types.is_null(batch.column(name).type)}
        self._spec |= {name: tf.io.RaggedFeature(_dtype(column.type.value_type)) for name, column in typed.items()}
        return {
            name: _column(
                pc.list_parent_indices(column).to_numpy(),
                column.flatten().to_numpy(zero_copy_only=False),
                len(serialized),
            )
            for name, column in typed.items()
        }


def _dtype(values: pa.DataType) -> tf.DType:
    if pa.types.is_integer(values):
        return tf.int64
    return tf.float32 if pa.types.is_floating(values) else tf.string


def _column(rows: Any, values: Any, length: int) -> Any:
    """An array [length, 1] if each row has one value, else sparse values."""
    rows = rows.astype(np.int64)
    if len(rows) == length and (np.diff(rows) == 1).all():
        return values[:, np.newaxis]
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    width = int(places.max()) + 1 if len(places) else 0
    return tf.compat.v1.SparseTensorValue(np.stack([rows, places], axis=1), values, np.array([length, width]))
