"""Conversion of a SavedModel's signature to the bytes of a TF Lite model.

Inputs and outputs keep the SavedModel's types by default, whatever the quantization: an app can switch between them
without changes, and a uint8 image goes in as it is. Quantized inputs and outputs make the caller apply scales that the
representative rows happened to give; only a device without floating-point arithmetic needs them.

TensorFlow's own ops (Select TF) are not used: they need a runtime that a phone's TF Lite does not have. Nor does TF
Lite know bfloat16, or compute anything in float16. In a model of mixed precision the variables are float32 and only the
computation is reduced: the same graph with every reduced type replaced by float32 is the same model, computed more
exactly, and that is what is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.convert_phase import ConverterError
from tensorflow.lite.tools import flatbuffer_utils
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from components.tflite.saved_model import SIGNATURE, Arrays
from components.tflite.settings import InferenceType, Quantization
from contracts.errors import ExportError

# TensorFlow ships no types.
Function: TypeAlias = Any
GraphDef: TypeAlias = Any

REDUCED = frozenset({types_pb2.DT_BFLOAT16, types_pb2.DT_HALF})


def is_float32(signature: Function) -> bool:
    """Whether a signature computes without reduced precision."""
    nodes = _nodes(signature.graph.as_graph_def())
    return not any(attribute.type in REDUCED for node in nodes for attribute in node.attr.values())


def save_in_float32(signature: Function, folder: Path) -> None:
    """Saves the signature as a SavedModel of its own that computes everything in float32.

    Args:
        signature: A concrete function of a loaded SavedModel, whose inputs and outputs have no reduced type.
        folder: Where to save it.
    """
    frozen = convert_variables_to_constants_v2(signature)
    graph = frozen.graph.as_graph_def()
    for node in _nodes(graph):
        _widen(node)
    imported = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph, name=""), [])
    widened = imported.prune(
        [imported.graph.get_tensor_by_name(tensor.name) for tensor in frozen.inputs],
        [imported.graph.get_tensor_by_name(tensor.name) for tensor in frozen.outputs],
    )
    specs, outputs = signature.structured_input_signature[1], sorted(signature.structured_outputs)

    def predict(tensors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        # A concrete function takes and returns its named tensors in the order of their names.
        return dict(zip(outputs, widened(*(tensors[name] for name in sorted(tensors))), strict=True))

    module = tf.Module()
    module.predict = tf.function(
        predict, input_signature=[{n: tf.TensorSpec(spec.shape, spec.dtype, n) for n, spec in specs.items()}]
    )
    tf.saved_model.save(module, str(folder), signatures={SIGNATURE: module.predict})


def _nodes(graph: GraphDef) -> Iterator[Any]:
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _widen(node: Any) -> None:
    """Replaces the reduced types of one node of a graph."""
    for attribute in node.attr.values():
        if attribute.type in REDUCED:
            attribute.type = types_pb2.DT_FLOAT
        for position, kind in enumerate(attribute.list.type):
            if kind in REDUCED:
                attribute.list.type[position] = types_pb2.DT_FLOAT
        if attribute.HasField("tensor") and attribute.tensor.dtype in REDUCED:
            values = tf.make_ndarray(attribute.tensor).astype(np.float32)
            attribute.tensor.CopyFrom(tf.make_tensor_proto(values))


BOUNDARY_OPS = frozenset({"CAST", "DEQUANTIZE"})
"""Ops that output float32 without computing anything: conversions to and from integers."""


def convert(
    saved_model: Path,
    quantization: Quantization,
    representative: Callable[[], Iterator[Arrays]],
    input_type: InferenceType = "float32",
    output_type: InferenceType = "float32",
) -> bytes:
    """Converts the signature `predict_transformed` to a TF Lite model.

    Args:
        saved_model: The SavedModel's folder.
        quantization: See `TFLiteSettings`; not `none`.
        representative: Yields single rows [1, ...] of the training split; only int8 needs them.
        input_type: The type of float32 inputs.
        output_type: The type of float32 outputs.

    Raises:
        ExportError: TF Lite lacks ops of the model, or `int8` leaves ops in float32.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model), signature_keys=[SIGNATURE])
    _configure(converter, quantization, representative)
    converter.inference_input_type = tf.as_dtype(input_type)
    converter.inference_output_type = tf.as_dtype(output_type)
    try:
        model = bytes(converter.convert())
    except (ConverterError, RuntimeError) as error:
        raise _translated(error) from error
    if quantization == "int8" and (float32_ops := float_ops(model)):
        raise ExportError(
            f"ops of the model cannot be quantized to int8: {', '.join(float32_ops)}.",
            "Set tflite.quantization to int8_with_float_fallback, which leaves them in float32, "
            "or build the model without them.",
        )
    return model


def float_ops(model: bytes) -> list[str]:
    """The sorted names of ops that compute float32 values, without those that only convert."""
    parsed = flatbuffer_utils.convert_bytearray_to_object(model)
    names = set()
    for graph in parsed.subgraphs:
        for operator in graph.operators:
            name = flatbuffer_utils.opcode_to_name(parsed, operator.opcodeIndex)
            types = {graph.tensors[index].type for index in operator.outputs}
            if schema.TensorType.FLOAT32 in types and name not in BOUNDARY_OPS:
                names.add(name)
    return sorted(names)


def _configure(converter: Any, quantization: Quantization, representative: Callable[[], Iterator[Arrays]]) -> None:
    if quantization == "float32":
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    elif quantization != "dynamic":
        converter.representative_dataset = representative
        fallback = [tf.lite.OpsSet.TFLITE_BUILTINS] if quantization == "int8_with_float_fallback" else []
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, *fallback]


def _translated(error: ConverterError | RuntimeError) -> ExportError:
    """Reduces the converter's error, a page of locations in its graph, to the ops that it is about."""
    names = {fault.operator.name.removeprefix("tf.") for fault in getattr(error, "errors", ())}
    ops = sorted(names - {""})
    if not ops:
        # The first line is a location in the graph, then the message.
        message = str(error).strip().partition("\n")[0].rpartition("error: ")[2]
        return ExportError(
            f"the model cannot be converted to TF Lite. The converter says: {message}",
            "Build the model from other layers, or set tflite.quantization to none.",
        )
    return ExportError(
        f"TF Lite lacks ops that the model uses: {', '.join(ops)}.",
        "Build the model without them (Select TF ops are not used, since phones lack them), do their work in "
        "preprocessing_fn, or set tflite.quantization to none.",
    )
