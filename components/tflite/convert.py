"""Conversion: a SavedModel's signature to the bytes of a TF Lite model.

Inputs and outputs keep the SavedModel's types whatever the quantization: an app that moves from one to another changes
nothing, and a uint8 image goes in as it is. The other way, quantized inputs, would make the caller apply a scale that
the representative rows happened to give; what it would save is one CAST and one QUANTIZE of the input.

Ops of TensorFlow itself (Select TF) are not used: they need a runtime that a phone's TF Lite does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.convert_phase import ConverterError
from tensorflow.lite.tools import flatbuffer_utils

from components.errors import ExportError
from components.tflite.saved_model import SIGNATURE, Arrays
from components.tflite.settings import Quantization

BOUNDARY_OPS = frozenset({"CAST", "DEQUANTIZE"})
"""Ops that put out float32 and compute nothing: the way into and out of the integers."""


def convert(saved_model: Path, quantization: Quantization, representative: Callable[[], Iterator[Arrays]]) -> bytes:
    """The TF Lite model of the signature `predict_transformed`.

    Args:
        saved_model: The SavedModel's folder.
        quantization: See `TFLiteSettings`; `none` converts and quantizes nothing.
        representative: Makes single rows [1, ...] of the training split; asked for by int8 alone.

    Raises:
        ExportError: TF Lite lacks ops of the model, or `int8` leaves ops in float32.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model), signature_keys=[SIGNATURE])
    _configure(converter, quantization, representative)
    try:
        model = bytes(converter.convert())
    except (ConverterError, RuntimeError) as error:
        raise _translated(error) from error
    if quantization == "int8" and (left := float_ops(model)):
        raise ExportError(
            f"ops of the model cannot be quantized to int8: {', '.join(left)}.",
            "Set tflite.quantization to int8_with_float_fallback, which leaves them in float32, "
            "or build the model without them.",
        )
    return model


def float_ops(model: bytes) -> list[str]:
    """The names of ops that compute float32 values, sorted; those that only convert them do not count."""
    parsed = flatbuffer_utils.convert_bytearray_to_object(model)
    found = set()
    for graph in parsed.subgraphs:
        for operator in graph.operators:
            name = flatbuffer_utils.opcode_to_name(parsed, operator.opcodeIndex)
            types = {graph.tensors[index].type for index in operator.outputs}
            if schema.TensorType.FLOAT32 in types and name not in BOUNDARY_OPS:
                found.add(name)
    return sorted(found)


def _configure(converter: Any, quantization: Quantization, representative: Callable[[], Iterator[Arrays]]) -> None:
    if quantization == "none":
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    elif quantization != "dynamic":
        converter.representative_dataset = representative
        fallback = [tf.lite.OpsSet.TFLITE_BUILTINS] if quantization == "int8_with_float_fallback" else []
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, *fallback]


def _translated(error: ConverterError | RuntimeError) -> ExportError:
    """The converter's error, which is a page of locations in its graph, as the ops that it is about."""
    names = {found.operator.name.removeprefix("tf.") for found in getattr(error, "errors", ())}
    ops = sorted(names - {""})
    if not ops:
        # The first line is a location in the graph, then the message.
        message = str(error).strip().partition("\n")[0].rpartition("error: ")[2]
        return ExportError(
            f"the model cannot be converted to TF Lite. The converter says: {message}",
            "Build the model from other layers, or set tflite.quantization to none.",
        )
    return ExportError(
        f"TF Lite has no such ops as the model uses: {', '.join(ops)}.",
        "Build the model without them (Select TF ops are not used, for phones lack them), do their work in "
        "preprocessing_fn, or set tflite.quantization to none.",
    )
