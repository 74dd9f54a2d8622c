"""Columns of requests and answers: raw features, transformed features, and their form in JSON."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from components.infra_validator.sample import Array, Arrays, Batch
from contracts.model_card import Tensor

BATCHES_KEPT = 16


def transformed_inputs(batch: Batch, inputs: Mapping[str, Tensor]) -> Arrays:
    """The transformed features in the dtypes and shapes of the model's inputs; TFRecords hold only int64 and float32.

    Args:
        batch: The rows.
        inputs: The inputs of `predict_transformed`.
    """
    columns = {}
    for name, tensor in inputs.items():
        values = batch.transformed[tensor.feature or name].astype(tf.as_dtype(tensor.dtype).as_numpy_dtype)
        same_rank = tensor.shape is None or values.ndim == len(tensor.shape)
        columns[name] = values if same_rank else values.reshape(len(values), *(tensor.shape or ())[1:])
    return columns


class RawColumns:
    """Raw features as the signature `predict` takes them.

    Args:
        inputs: The signature's inputs.
    """

    def __init__(self, inputs: Mapping[str, Tensor]) -> None:
        self._inputs = inputs
        self._spec = {
            tensor.feature or name: tf.io.VarLenFeature(tf.as_dtype(tensor.dtype)) for name, tensor in inputs.items()
        }

        # The ways take turns with the same rows, and each column that is parsed costs a sparse tensor.
        self._parsed = functools.lru_cache(maxsize=BATCHES_KEPT)(self._parse)

    def _parse(self, rows: tuple[bytes, ...]) -> Mapping[str, tf.SparseTensor]:
        return tf.io.parse_example(rows, self._spec)  # type: ignore[no-any-return]

    def __call__(self, batch: Batch) -> dict[str, Array]:
        cells = self._parsed(tuple(batch.rows))
        return {name: _column(cells[tensor.feature or name], tensor) for name, tensor in self._inputs.items()}

    def can_ask(self, batch: Batch) -> list[int]:
        """The rows that do not themselves contain the marker for missing values, by position."""
        cells = self._parsed(tuple(batch.rows))
        marked_rows: set[int] = set()
        for name, tensor in self._inputs.items():
            if tensor.missing is not None:
                present, marker = cells[tensor.feature or name], _missing(tensor)
                values = present.values.numpy()
                is_marker = np.isnan(values) if marker != marker else values == marker  # NaN
                marked_rows.update(present.indices.numpy()[is_marker, 0].tolist())
        return [row for row in range(len(batch.rows)) if row not in marked_rows]


def _column(cells: tf.SparseTensor, tensor: Tensor) -> Array:
    """The values of all rows, [rows] or [rows, ...], with the marker where a value is missing."""
    shape, values = tensor.shape or [None], cells.values.numpy()
    rows, width = cells.dense_shape.numpy()
    if tensor.missing is None:
        return np.asarray(values.reshape(rows, *shape[1:]))
    dense = np.full([rows, 1 if len(shape) == 1 else width], _missing(tensor), values.dtype)
    dense[tuple(cells.indices.numpy().T)] = values
    return dense[:, 0] if len(shape) == 1 else dense


def _missing(tensor: Tensor) -> Any:
    if tensor.dtype == "string":
        return str(tensor.missing).encode()
    return float("nan") if tensor.missing == "NaN" else tensor.missing


def to_json(values: Array) -> list[Any]:
    """A column in JSON's types: bytes as text, or in base64 if they are not UTF-8."""
    if values.dtype != object:
        return list(values.tolist())
    return [to_json(value) if isinstance(value, np.ndarray) else _text(value) for value in values]


def _text(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def from_json(document: Any, expected: Arrays) -> Arrays:
    """The outputs in a JSON answer, which carries no types, and no name if there is a single output."""
    named = document if isinstance(document, dict) else {next(iter(expected)): document}
    return {name: _array(values, expected.get(name)) for name, values in named.items()}


def _array(values: list[Any], expected: Array | None) -> Array:
    if expected is not None and expected.dtype == object:
        return _strings(values)
    array = np.array(values)
    are_numbers = expected is not None and expected.dtype.kind == "f" and array.dtype.kind in "if"
    return array.astype(expected.dtype) if expected is not None and are_numbers else array


def _strings(values: list[Any]) -> Array:
    """Text and base64 as bytes, in the shape of the nested lists."""
    cells = np.array(values, object)
    decoded = [base64.b64decode(v["b64"]) if isinstance(v, dict) else str(v).encode() for v in cells.ravel()]
    strings = np.empty(len(decoded), object)
    strings[:] = decoded
    return strings.reshape(cells.shape)
