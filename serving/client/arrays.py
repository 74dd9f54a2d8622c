"""Converts what a caller passes to arrays of the types that a signature takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from contracts.near_names import did_you_mean
from serving.client.results import Array, ClientError, Signature, TensorSpec
from serving.errors import Code

Example = Mapping[str, Any]


def input_arrays(signature: Signature, inputs: Mapping[str, Any] | Any) -> dict[str, Array]:
    """Converts whole tensors by name; for a signature with one input, the bare tensor will do.

    Raises:
        ClientError: INVALID_ARGUMENT, names or values do not fit the signature.
    """
    if not isinstance(inputs, Mapping):
        inputs = {_only_input(signature): inputs}
    _check_names(signature, inputs, "")
    return {name: _array(name, inputs[name], spec) for name, spec in signature.inputs.items()}


def instance_arrays(signature: Signature, instances: Iterable[Mapping[str, Any] | Any]) -> dict[str, Array]:
    """Converts rows, each a mapping of all inputs; for a signature with one input, bare values will do.

    Raises:
        ClientError: INVALID_ARGUMENT, there are no rows, or names or values do not fit the signature.
    """
    rows = [row if isinstance(row, Mapping) else {_only_input(signature): row} for row in instances]
    if not rows:
        raise _refusal("received no instances, expected at least one")
    for number, row in enumerate(rows, start=1):
        _check_names(signature, row, f"instance {number}: ")
    return {name: _array(name, [row[name] for row in rows], spec) for name, spec in signature.inputs.items()}


def example_features(examples: Iterable[Example]) -> list[dict[str, list[Any]]]:
    """The features of each example, as lists of values of one Python type: bytes, str, float, int or bool.

    Raises:
        ClientError: INVALID_ARGUMENT, there are no examples.
    """
    rows = [{name: _values(value) for name, value in example.items()} for example in examples]
    if not rows:
        raise _refusal("received no examples, expected at least one")
    return rows


def to_output(values: Any, spec: TensorSpec | None) -> Array:
    """Converts an output's JSON values to an array of the signature's type; strings to `bytes`."""
    if spec is not None and spec.dtype == "string":
        return _strings(values)
    # NumPy has no bfloat16; float32 can hold all of its numbers.
    dtype = {"bfloat16": "float32"}.get(spec.dtype, spec.dtype) if spec else None
    return np.array(values, dtype)


def _array(name: str, values: Any, spec: TensorSpec) -> Array:
    try:
        if spec.dtype == "string":
            return _strings(values)
        array = np.asarray(values)
        # Values that the type cannot hold are refused, never converted: 2.5 is not an integer, "7" not a number.
        dtype = np.dtype("float32" if spec.dtype == "bfloat16" else spec.dtype)
        if array.size and not _fits(array, dtype):
            raise ValueError(f"{array.dtype.name} values do not fit")
        return array.astype(dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise _refusal(f"input {name!r} takes {spec.dtype} of shape {_shape(spec)}: {error}") from error


def _fits(array: Array, dtype: np.dtype[Any]) -> bool:
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return int(array.min()) >= bounds.min and int(array.max()) <= bounds.max
    if dtype.kind in "fc":
        return array.dtype.kind in "iufc" and (array.dtype.kind != "c" or dtype.kind == "c")
    return bool(array.dtype.kind == dtype.kind)


def _strings(values: Any) -> Array:
    """Encodes text as UTF-8 in an object array with the shape of the lists."""
    array = np.asarray(values, object) if not isinstance(values, np.ndarray) else values.astype(object)
    flat = np.empty(array.size, object)
    for index, value in enumerate(array.ravel().tolist()):
        if not isinstance(value, (str, bytes)):
            raise TypeError(f"received {value!r}, expected text or bytes")
        flat[index] = value.encode() if isinstance(value, str) else value
    return flat.reshape(array.shape)


def _values(value: Any) -> list[Any]:
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return list(plain) if isinstance(plain, Sequence) and not isinstance(plain, (str, bytes)) else [plain]


def _only_input(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        raise _refusal(f"signature {signature.name} takes {', '.join(signature.inputs)}: give each by its name")
    return next(iter(signature.inputs))


def _check_names(signature: Signature, inputs: Mapping[str, Any], where: str) -> None:
    names = list(signature.inputs)
    for name in inputs:
        if name not in signature.inputs:
            hint = did_you_mean(name, names)
            raise _refusal(f"{where}signature {signature.name} has no input {name!r}. {hint}")
    if missing := [name for name in names if name not in inputs]:
        raise _refusal(f"{where}lacks the inputs {', '.join(missing)} of signature {signature.name}")


def _shape(spec: TensorSpec) -> str:
    if spec.shape is None:
        return "any"
    return "[" + ", ".join("any" if size is None else str(size) for size in spec.shape) + "]"


def _refusal(message: str) -> ClientError:
    return ClientError(Code.INVALID_ARGUMENT, message)
