"""The SavedModel to convert: its signature with inputs and outputs, its class names, and rows to feed it."""

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
        features: The transformed feature of each input; the names differ only where an input cannot have the feature's.
        variables_bytes: The size of the variables that the signature uses.
        labels: The class names in the order of their ids; empty if the SavedModel names none.

    Raises:
        ExportError: The SavedModel has no such signature.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Kept alive here, since the signature holds its variables only weakly.
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
    """Input -> feature, from the model's card if it has one."""
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
        feature_spec: How to parse the files.
        inputs: The signature's inputs; values are cast to their types, since TFRecords hold only int64 and float32, and
            reshaped to their shapes, since a model may expect [batch, 1] where the transform gives [batch].
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
            ExportError: A feature is missing or has a variable length, or the label is not a class id.
        """
        for name in (*(self.features[input_name] for input_name in self.inputs), self.label):
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
        """Yields the rows in order, as `(inputs, class ids int64 [batch])` of at most `size` rows.

        Raises:
            DataError: There are no rows.
        """
        empty = True
        for rows in self._records().batch(size).map(self._parse):
            empty = False
            yield self._to_inputs(rows), tf.reshape(rows[self.label], [-1]).numpy()
        if empty:
            raise self._no_rows_error()

    def evenly_spaced(self, count: int) -> Iterator[Arrays]:
        """Yields at most `count` single rows [1, ...] over the whole split, so that sorted data give every class.

        Raises:
            DataError: There are no rows.
        """
        rows = self._count()
        if rows == 0:
            raise self._no_rows_error()
        # One of every `rows / count` rows, even if that is not a whole number.
        chosen = self._records().enumerate().filter(lambda position, _record: position * count % rows < count)
        for row in chosen.map(lambda _position, record: record).batch(1).map(self._parse):
            yield self._to_inputs(row)

    def _to_inputs(self, rows: Mapping[str, tf.Tensor]) -> Arrays:
        arrays = {}
        for name, spec in self.inputs.items():
            values = tf.cast(rows[self.features[name]], spec.dtype)
            same_rank = values.shape.rank == spec.shape.rank
            arrays[name] = (values if same_rank else tf.reshape(values, [-1, *spec.shape[1:]])).numpy()
        return arrays

    def _count(self) -> int:
        batches = self._records().batch(COUNT_ROWS)
        return int(batches.reduce(tf.constant(0, tf.int64), lambda n, batch: n + tf.size(batch, tf.int64)))

    def _no_rows_error(self) -> DataError:
        return DataError(
            f"the split {self.split!r} has no rows; the TF Lite model is quantized on `train` and judged on `eval`.",
            "Give it rows (data.splits), or set tflite.quantization to none.",
        )

    def _records(self) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(list(self.files), compression_type="GZIP")

    def _parse(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        names = {*self.features.values(), self.label}
        return dict(tf.io.parse_example(records, {n: s for n, s in self.feature_spec.items() if n in names}))
