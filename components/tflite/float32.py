"""Models of mixed precision: TF Lite knows no bfloat16 and computes nothing in float16.

Their variables are float32, and only what is computed with them is not. So the same graph with every reduced type
replaced by float32 is the same model, computed more exactly; that is what is converted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from components.tflite.saved_model import SIGNATURE

# TensorFlow ships no types.
Function: TypeAlias = Any
GraphDef: TypeAlias = Any

REDUCED = frozenset({types_pb2.DT_BFLOAT16, types_pb2.DT_HALF})


def is_float32(signature: Function) -> bool:
    """Whether a signature computes in no reduced precision."""
    nodes = _nodes(signature.graph.as_graph_def())
    return not any(attribute.type in REDUCED for node in nodes for attribute in node.attr.values())


def save(signature: Function, folder: Path) -> None:
    """Saves the signature as a SavedModel of its own, with all of its computation in float32.

    Args:
        signature: A concrete function of a loaded SavedModel; its inputs and outputs are of no reduced type.
        folder: Where to.
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
        # A concrete function takes and returns what it is called with by name in the order of the names.
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
