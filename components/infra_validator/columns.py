"""Columns of requests and answers: raw features, transformed ones, and what JSON makes of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from components.infra_validator.sample import Array, Arrays, Batch
from contracts.model_card import Tensor


def transformed_inputs(batch: Batch, inputs: Mapping[str, Tensor]) -> Arrays:
    """What Transform wrote, as the model's own inputs take it: TFRecords hold int64 and float32 only.

    Args:
        batch: The rows.
        inputs: Those of `predict_transformed`.
    """
    found = {}
    for name, tensor in inputs.items():
        values = batch.transformed[tensor.feature or name].astype(tf.as_dtype(tensor.dtype).as_numpy_dtype)
        same_rank = tensor.shape is None or values.ndim == len(tensor.shape)
        found[name] = values if same_rank else values.reshape(len(values), *(tensor.shape or ())[1:])
    return found


class RawColumns:
    """Raw features as the signature `predict` takes them.

    Args:
        inputs: Its inputs.
    """

    def __init__(self, inputs: Mapping[str, Tensor]) -> None:
        self._inputs = inputs
        self._spec = {
            tensor.feature or name: tf.io.VarLenFeature(tf.as_dtype(tensor.dtype)) for name, tensor in inputs.items()
        }

    def __call__(self, batch: Batch) -> dict[str, Array]:
        cells = tf.io.parse_example(batch.rows, self._spec)
        return {name: _column(cells[tensor.feature or name], tensor) for name, tensor in self._inputs.items()}

    def can_ask(self, batch: Batch) -> list[int]:
        """The rows in which no value is the one that stands for a missing one."""
        cells = tf.io.parse_example(batch.rows, self._spec)
        marked: set[int] = set()
        for name, tensor in self._inputs.items():
            if tensor.missing is not None:
                given, mark = cells[tensor.feature or name], _missing(tensor)
                values = given.values.numpy()
                alike = np.isnan(values) if mark != mark else values == mark  # NaN
                marked.update(given.indices.numpy()[alike, 0].tolist())
        return [row for row in range(len(batch.rows)) if row not in marked]


def _column(cells: tf.SparseTensor, tensor: Tensor) -> Array:
    """The values of all rows, [rows] or [rows, ...]; what is missing has the value that stands for it."""
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
    """A column as JSON has it: bytes as text, or in base64 where they are none."""
    if values.dtype != object:
        return list(values.tolist())
    return [to_json(value) if isinstance(value, np.ndarray) else _text(value) for value in values]


def _text(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def from_json(answer: Any, wanted: Arrays) -> Arrays:
    """The outputs of an answer of JSON, which has neither types nor, with a single output, its name."""
    named = answer if isinstance(answer, dict) else {next(iter(wanted)): answer}
    return {name: _array(values, wanted.get(name)) for name, values in named.items()}


def _array(values: list[Any], wanted: Array | None) -> Array:
    if wanted is not None and wanted.dtype == object:
        return _strings(values)
    found = np.array(values)
    numbers = wanted is not None and wanted.dtype.kind == "f" and found.dtype.kind in "if"
    return found.astype(wanted.dtype) if wanted is not None and numbers else found


def _strings(values: list[Any]) -> Array:
    """Texts and base64 as bytes, with the shape of the nested lists."""
    given = np.array(values, object)
    decoded = [base64.b64decode(v["b64"]) if isinstance(v, dict) else str(v).encode() for v in given.ravel()]
    strings = np.empty(len(decoded), object)
    strings[:] = decoded
    return strings.reshape(given.shape)
