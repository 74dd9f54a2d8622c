"""Puts TensorFlow's batching scheduler around a signature, in the graph that it was loaded into.

A BatchFunction runs a function from the graph's library; here that is the part of the graph between a signature's
inputs and outputs. Variables and tables stay where the loader filled them: the function captures their handles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import NameAttrList
from tensorflow.python.client import pywrap_tf_session

from serving.models.configuration import BatchingParameters
from serving.models.signatures import Signature, TensorSpec

# Their handles are made anew for each computation, and so belong inside the function.
OF_ONE_COMPUTATION = ("TensorArray", "Stack")
# Larger constants are captured too, since the function would hold a copy of them.
LARGE_CONSTANT = 1024
# One scheduler per version: its Session has its own resource manager, and so its own name space.
SCHEDULER = "batching"
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


class NotBatchableError(Exception):
    """A signature that can only be run request by request; the message says why."""


@dataclasses.dataclass(frozen=True)
class BatchedGraph:
    """What to feed and fetch to run a request in a batch.

    Attributes:
        feeds: The tensor to feed for each input.
        queues: For each queue, the tensor to fetch for each output. Queues share threads but never batches.
    """

    feeds: Mapping[str, Any]
    queues: Sequence[Mapping[str, Any]]


def wrap_signature(graph: tf.Graph, signature: Signature, parameters: BatchingParameters, queues: int) -> BatchedGraph:
    """Adds the operations that run a signature in batches to its graph.

    Args:
        graph: The graph that the version was loaded into; not yet finalized.
        signature: The signature.
        parameters: When requests run together.
        queues: How many queues to make.

    Raises:
        NotBatchableError: The signature can only be run request by request, for which the graph can still be used.
    """
    _check(signature)
    try:
        inputs = [graph.get_tensor_by_name(spec.tensor_name) for spec in signature.inputs.values()]
        outputs = [graph.get_tensor_by_name(spec.tensor_name) for spec in signature.outputs.values()]
        with graph.as_default(), tf.name_scope("batching/"):
            function, captured = _function(graph, inputs, outputs)
            feeds = [tf.compat.v1.placeholder(tensor.dtype) for tensor in inputs]
            calls = [
                _call(f"{signature.name}/{number}", function, feeds, captured, outputs, parameters)
                for number in range(queues)
            ]
    except (KeyError, TypeError, ValueError, tf.errors.OpError) as error:
        raise NotBatchableError(str(error).partition("\n")[0]) from error
    return BatchedGraph(_by_name(signature.inputs, feeds), [_by_name(signature.outputs, call) for call in calls])


def _check(signature: Signature) -> None:
    if not signature.inputs:
        raise NotBatchableError("it has no inputs")
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        for name, spec in specs.items():
            if not spec.tensor_name:
                raise NotBatchableError(f"{kind} {name} is not a dense tensor")
            if spec.shape is not None and (not spec.shape or spec.shape[0] is not None):
                raise NotBatchableError(f"{kind} {name} has shape {list(spec.shape)}, whose first dimension is fixed")


def _function(graph: tf.Graph, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[str, list[Any]]:
    """Makes a function of the graph between inputs and outputs; returns its name and the tensors that it captures."""
    operations, captured = _between(inputs, outputs)
    name = graph.unique_name("function").replace("/", "_")
    with graph._c_graph.get() as c_graph:
        function = pywrap_tf_session.TF_GraphToFunction_wrapper(
            c_graph,
            name,
            False,
            [operation._c_op for operation in operations],
            _ends([*inputs, *captured]),
            _ends(outputs),
            [],
            [],
            [],
            None,
            "",
        )
        try:
            pywrap_tf_session.TF_GraphCopyFunction(c_graph, function, None)
        finally:
            pywrap_tf_session.TF_DeleteFunction(function)
    return name, captured


def _between(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The operations that compute the outputs from the inputs, and the tensors that they need from other operations."""
    fed = {tensor.ref() for tensor in inputs}
    fed_operations = {tensor.op for tensor in inputs}
    operations: dict[Any, None] = {}
    captured: dict[Any, None] = {}
    waiting = list(outputs)
    while waiting:
        tensor = waiting.pop()
        operation = tensor.op
        if tensor.ref() in fed or tensor.ref() in captured:
            continue
        if _captured(tensor):
            captured[tensor.ref()] = None
        elif operation not in operations:
            operations[operation] = None
            waiting.extend(operation.inputs)
            before = [op for op in operation.control_inputs if op not in operations and op not in fed_operations]
            operations.update(dict.fromkeys(before))
            waiting.extend(tensor for op in before for tensor in op.inputs)
    for operation in operations:
        _check_operation(operation)
    return list(operations), [reference.deref() for reference in captured]


def _captured(tensor: Any) -> bool:
    if tensor.dtype == tf.resource:
        return not tensor.op.type.startswith(OF_ONE_COMPUTATION)
    return tensor.op.type == "Const" and (tensor.shape.num_elements() or 0) > LARGE_CONSTANT


def _check_operation(operation: Any) -> None:
    if operation.type in PLACEHOLDERS:
        raise NotBatchableError(f'it depends on "{operation.name}", which is none of its inputs')
    if any(tensor.dtype._is_ref_dtype for tensor in operation.outputs):
        raise NotBatchableError(f'it reads the reference variable "{operation.name}" of TensorFlow 1')


def _call(
    queue: str,
    function: str,
    feeds: Sequence[Any],
    captured: Sequence[Any],
    outputs: Sequence[Any],
    parameters: BatchingParameters,
) -> list[Any]:
    splitting = parameters.enable_large_batch_splitting
    sizes = list(parameters.allowed_batch_sizes)
    if splitting and not sizes and parameters.max_execution_batch_size < parameters.max_batch_size:
        # The operation takes its limit from the last allowed size; if all sizes are allowed, no batch is padded.
        sizes = list(range(1, parameters.max_execution_batch_size + 1))
    return list(
        tf.raw_ops.BatchFunction(
            in_tensors=feeds,
            captured_tensors=captured,
            f=NameAttrList(name=function),
            num_batch_threads=parameters.num_batch_threads,
            max_batch_size=parameters.max_batch_size,
            batch_timeout_micros=parameters.batch_timeout_micros,
            Tout=[tensor.dtype for tensor in outputs],
            max_enqueued_batches=parameters.max_enqueued_batches,
            allowed_batch_sizes=sizes,
            shared_name=SCHEDULER,
            batching_queue=queue,
            enable_large_batch_splitting=splitting,
        )
    )


def _by_name(specs: Mapping[str, TensorSpec], tensors: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(specs, _ends(tensors), strict=True))


def _ends(tensors: Iterable[Any]) -> list[Any]:
    return [tensor._as_tf_output() for tensor in tensors]
