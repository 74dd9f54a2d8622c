"""The SavedModel's side: the signature that is converted, what it takes and gives, its class names, and rows for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from contracts import model_card
from contracts.errors import DataError, ExportError

SIGNATURE = "predict_transformed"
"""Takes transformed features by name, so that no op of the transform graph has to exist in TF Lite."""

LABELS_FILE = Path("assets.extra", "labels.txt")

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


class SavedModel:
    """A loaded SavedModel, called by its signature `predict_transformed`.

    Args:
        path: The SavedModel's folder.

    Attributes:
        signature: The signature as a concrete function; it lives as long as this object.
        inputs: Type and shape [batch, ...] of each input by name.
        outputs: The same of each output.
        features: The transformed feature of each input; another name only where a signature's input cannot have it.
        variables_bytes: The size of the variables that the signature uses.
        labels: The class names in the order of their ids; empty where the SavedModel names none.

    Raises:
        ExportError: It has no such signature.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Kept, for the signature holds its variables only weakly.
        self._loaded = tf.saved_model.load(str(path))
        signatures = self._loaded.signatures
        if SIGNATURE not in signatures:
            raise ExportError(
                f"{path} has no signature {SIGNATURE!r}; it has {', '.join(sorted(signatures)) or 'none'}.",
                "Train the model again with this version (`millrace run --from Trainer`).",
            )
        self.signature = signatures[SIGNATURE]
        self.inputs: dict[str, tf.TensorSpec] = dict(self.signature.structured_input_signature[1])
        self.outputs: dict[str, tf.TensorSpec] = dict(self.signature.structured_outputs)
        self.features = {name: name for name in self.inputs} | _features(path)
        self.variables_bytes = sum(
            variable.shape.num_elements() * variable.dtype.size for variable in self.signature.variables
        )
        self.labels = _labels(path / LABELS_FILE)

    def __call__(self, inputs: Mapping[str, Array]) -> Arrays:
        """The outputs by name for arrays [batch, ...] by name."""
        outputs = self.signature(**{name: tf.constant(values) for name, values in inputs.items()})
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def _features(path: Path) -> dict[str, str]:
    """The features by input, as the model's card has them where it has a card."""
    if not (path / model_card.CARD_FILE).exists():
        return {}
    inputs = model_card.read_card(path).signatures[SIGNATURE].inputs
    return {name: tensor.feature or name for name, tensor in inputs.items()}


def _labels(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()


COUNT_ROWS = 8_192


@dataclass(frozen=True)
class Rows:
    """A split of transformed examples.

    Attributes:
        split: Its name.
        files: gzip TFRecords of tf.Examples.
        feature_spec: How to parse them.
        inputs: The signature's inputs; values are cast to their types, for TFRecords hold int64 and float32 only, and
            take their shapes, for a model may want [batch, 1] where the transform gives [batch].
        features: The transformed feature of each input.
        label: The transformed feature that is the label.
    """

    split: str
    files: Sequence[str]
    feature_spec: Mapping[str, Any]
    inputs: Mapping[str, tf.TensorSpec]
    features: Mapping[str, str]
    label: str

    def check(self) -> None:
        """Checks that every input and the label can be read.

        Raises:
            ExportError: A feature is not there, of variable length, or the label is not a class id.
        """
        for name in (*(self.features[given] for given in self.inputs), self.label):
            if not isinstance(self.feature_spec.get(name), tf.io.FixedLenFeature):
                raise ExportError(
                    f"the model's feature {name!r} is not a transformed feature of fixed shape; those are "
                    f"{', '.join(n for n, s in self.feature_spec.items() if isinstance(s, tf.io.FixedLenFeature))}.",
                    "Return it as a dense tensor from preprocessing_fn, or set tflite.quantization to none.",
                )
        label_type = self.feature_spec[self.label].dtype
        if not label_type.is_integer:
            raise ExportError(
                f"a TF Lite model is judged by the classes that it predicts, and the label {self.label!r} is "
                f"{label_type.name}; expected an integer class id.",
                "Return the label as int64 from preprocessing_fn, or set tflite.quantization to none.",
            )

    def batches(self, size: int) -> Iterator[tuple[Arrays, Any]]:
        """The rows in order, as `(inputs, class ids int64 [batch])` of at most `size` rows.

        Raises:
            DataError: There are none.
        """
        empty = True
        for rows in self._records().batch(size).map(self._parse):
            empty = False
            yield self._fitted(rows), tf.reshape(rows[self.label], [-1]).numpy()
        if empty:
            raise self._no_rows()

    def evenly_spaced(self, count: int) -> Iterator[Arrays]:
        """At most `count` single rows [1, ...], over the whole split, so that data sorted by class give every class.

        Raises:
            DataError: There are none.
        """
        rows = self._count()
        if rows == 0:
            raise self._no_rows()
        # Of every rows / count rows one, also where that is no whole number.
        chosen = self._records().enumerate().filter(lambda position, _record: position * count % rows < count)
        for row in chosen.map(lambda _position, record: record).batch(1).map(self._parse):
            yield self._fitted(row)

    def _fitted(self, rows: Mapping[str, tf.Tensor]) -> Arrays:
        arrays = {}
        for name, spec in self.inputs.items():
            values = tf.cast(rows[self.features[name]], spec.dtype)
            as_they_are = values.shape.rank == spec.shape.rank
            arrays[name] = (values if as_they_are else tf.reshape(values, [-1, *spec.shape[1:]])).numpy()
        return arrays

    def _count(self) -> int:
        batches = self._records().batch(COUNT_ROWS)
        return int(batches.reduce(tf.constant(0, tf.int64), lambda n, batch: n + tf.size(batch, tf.int64)))

    def _no_rows(self) -> DataError:
        return DataError(
            f"the split {self.split!r} has no rows; the TF Lite model is quantized on `train` and judged on `eval`.",
            "Give it rows (data.splits), or set tflite.quantization to none.",
        )

    def _records(self) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(list(self.files), compression_type="GZIP")

    def _parse(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        wanted = {*self.features.values(), self.label}
        return dict(tf.io.parse_example(records, {n: s for n, s in self.feature_spec.items() if n in wanted}))
