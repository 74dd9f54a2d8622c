"""A SavedModel's signatures, whether the arrays of a request fit them, and how long their runs take.

TensorFlow enforces a time limit by handing the run to another thread, which takes longer than a small model does. A run
that no request can make long needs neither that nor a thread other than the event loop's.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo

from serving import protocol
from serving.errors import invalid

# Signatures that say what to run at load; clients may not run them.
NOT_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
STRING_KINDS = frozenset("OSU")

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A signature's description of one input or output.

    Attributes:
        tensor_name: The tensor in the graph, such as `serving_default_x:0`; empty for a sparse or composite one.
        dtype: Its TensorFlow type.
        shape: Its dimensions, each None if unknown; None as a whole if even their number is unknown.
    """

    tensor_name: str
    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @functools.cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """Its type in NumPy; `object` for strings."""
        return np.dtype(self.dtype.as_numpy_dtype)


Signature = protocol.Signature[TensorSpec]


def read_signatures(meta_graph: MetaGraphDef) -> dict[str, Signature]:
    """Reads the signatures that clients may run, by name."""
    return {
        key: _signature(key, definition)
        for key, definition in sorted(meta_graph.signature_def.items())
        if key not in NOT_SIGNATURES
    }


def check_inputs(signature: Signature, inputs: Mapping[str, Any]) -> None:
    expected, received = signature.inputs.keys(), inputs.keys()
    if len(received) != len(expected):
        raise invalid(
            f"input size does not match signature: {len(received)}!={len(expected)} len({_names(received)}) != "
            f"len({_names(expected)}). Sent extra: {_names(received - expected)}. "
            f"Missing but required: {_names(expected - received)}.",
        )
    for name in received:
        if name not in expected:
            raise invalid(
                f"input tensor alias not found in signature: {name}. Inputs expected to be in the set "
                f"{_names(expected)}."
            )


def check_outputs(signature: Signature, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name not in signature.outputs:
            raise invalid(
                f"output tensor alias not found in signature: {name} Outputs expected to be in the set "
                f"{_names(signature.outputs)}."
            )
        if name in names[:index]:
            raise invalid(f"duplicate output tensor alias: {name}")


def _names(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def fit_input(signature: Signature, name: str, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    spec = signature.inputs[name]
    expected = spec.dtype
    if value.dtype == spec.numpy_dtype:
        return value
    if expected == tf.string and value.dtype.kind in STRING_KINDS:
        return value.astype(object)
    received = "string" if value.dtype.kind in STRING_KINDS else value.dtype.name
    raise invalid(f"input tensor {name} of signature {signature.name} has type {received}, expected {expected.name}")


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


# Operations that loop, wait for others, or run code that the graph does not show.
LASTING = re.compile(
    "While|NextIteration|^For$|MapDefun|Dataset|Iterator|Queue|Barrier|Stage|Peek|Recv|Send|Remote|Rpc|Reader"
    "|PyFunc|^ReadFile$|^BatchFunction$|^Batch$|^Unbatch"
)
# A run is quick if it is expected to take so little time that handing it to a thread is not worth it.
QUICK_SECONDS = 1e-3
# A time limit of this many times the expected time need not be enforced.
MARGIN = 100
REMEMBERED = 8

# Larger requests do not run on an event loop: even reading them takes too long.
QUICK_BYTES = 16 * 1024


class NotQuickError(Exception):
    """A request that has to be answered in a thread of its own."""


class Pace:
    """How long the latest runs of each signature took. Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[tuple[int, float], ...]] = {}

    def add(self, signature: str, size: int, seconds: float) -> None:
        """Records a run.

        Args:
            signature: The signature's name, one of the model's.
            size: How many elements its inputs had.
            seconds: How long it took.
        """
        # The tuple is replaced as a whole: if two threads do so at once, one run is lost, which does no harm.
        self._runs[signature] = (*self._runs.get(signature, ())[1 - REMEMBERED :], (size, seconds))

    def expected(self, signature: str, size: int) -> float:
        """How many seconds a run should take: the minimum of the latest, since waiting for a processor only adds time.

        Inputs larger than those seen are assumed to take time in proportion. Infinite if no run has been recorded.
        """
        least = float("inf")
        for seen_size, seconds in self._runs.get(signature, ()):
            needed = seconds if size <= seen_size else seconds * size / max(1, seen_size)
            if needed < least:
                least = needed
        return least


def count_elements(inputs: Arrays) -> int:
    """The total number of elements in the inputs."""
    return sum(array.size for array in inputs.values())


def is_steady(graph: GraphDef) -> bool:
    """Whether a graph only computes straight ahead, without loops and without waiting for anything.

    Such a graph takes time in proportion to the size of its inputs, whatever their values.
    """
    return not any(LASTING.search(node.op) for node in _nodes(graph))


def _nodes(graph: GraphDef) -> Iterable[NodeDef]:
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def
