"""What a SavedModel's signatures say, and whether the arrays of a request fit them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo

from serving.errors import Code, ServingError

# Graphs say in these what to run at load; no client may ask for them.
NOT_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
STRING_KINDS = frozenset("OSU")

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """What a signature says of one input or output.

    Attributes:
        tensor_name: The tensor in the graph, such as `serving_default_x:0`; empty for a sparse or composite one.
        dtype: Its TensorFlow type.
        shape: Its dimensions, None where unknown; None as a whole where even their number is unknown.
    """

    tensor_name: str
    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @functools.cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """Its type as NumPy has it; that of objects for strings."""
        return np.dtype(self.dtype.as_numpy_dtype)


@dataclasses.dataclass(frozen=True)
class Signature:
    """One way to ask the model.

    Attributes:
        name: Such as `serving_default`.
        method_name: Such as `tensorflow/serving/predict`.
        inputs: The inputs by name.
        outputs: The outputs by name.
    """

    name: str
    method_name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


def signatures(meta_graph: MetaGraphDef) -> dict[str, Signature]:
    """Reads the signatures that clients may ask for, by name."""
    return {
        key: _signature(key, definition)
        for key, definition in sorted(meta_graph.signature_def.items())
        if key not in NOT_SIGNATURES
    }


def check_inputs(signature: Signature, inputs: Mapping[str, Any]) -> None:
    expected, received = signature.inputs.keys(), inputs.keys()
    if len(received) != len(expected):
        raise ServingError(
            Code.INVALID_ARGUMENT,
            f"input size does not match signature: {len(received)}!={len(expected)} len({_names(received)}) != "
            f"len({_names(expected)}). Sent extra: {_names(received - expected)}. "
            f"Missing but required: {_names(expected - received)}.",
        )
    for name in received:
        if name not in expected:
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"input tensor alias not found in signature: {name}. Inputs expected to be in the set "
                f"{_names(expected)}.",
            )


def check_outputs(signature: Signature, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name not in signature.outputs:
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"output tensor alias not found in signature: {name} Outputs expected to be in the set "
                f"{_names(signature.outputs)}.",
            )
        if name in names[:index]:
            raise ServingError(Code.INVALID_ARGUMENT, f"duplicate output tensor alias: {name}")


def _names(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def fitting(signature: Signature, name: str, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    spec = signature.inputs[name]
    expected = spec.dtype
    if value.dtype == spec.numpy_dtype:
        return value
    if expected == tf.string and value.dtype.kind in STRING_KINDS:
        return value.astype(object)
    received = "string" if value.dtype.kind in STRING_KINDS else value.dtype.name
    raise ServingError(
        Code.INVALID_ARGUMENT,
        f"input tensor {name} of signature {signature.name} has type {received}, expected {expected.name}",
    )


def _signature(name: str, definition: SignatureDef) -> Signature:
    return Signature(
        name,
        definition.method_name,
        {key: _tensor_spec(info) for key, info in sorted(definition.inputs.items())},
        {key: _tensor_spec(info) for key, info in sorted(definition.outputs.items())},
    )


def _tensor_spec(info: TensorInfo) -> TensorSpec:
    shape = None
    if not info.tensor_shape.unknown_rank:
        shape = tuple(None if dimension.size < 0 else dimension.size for dimension in info.tensor_shape.dim)
    return TensorSpec(info.name, tf.as_dtype(info.dtype), shape)
