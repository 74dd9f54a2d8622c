"""How long a model's runs take: what decides whether the next one may run without a time-out, and where.

TensorFlow keeps a time limit by handing the run to another thread, which takes longer than a small model does. A run
that nothing in its request can make long needs neither that nor a thread apart from the event loop's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

# Operations that loop, wait for others, or run what the graph does not show.
LASTING = re.compile(
    "While|NextIteration|^For$|MapDefun|Dataset|Iterator|Queue|Barrier|Stage|Peek|Recv|Send|Remote|Rpc|Reader"
    "|PyFunc|^ReadFile$|^BatchFunction$|^Batch$|^Unbatch"
)
# A run is quick if it is expected to take less than handing it to a thread would be worth.
QUICK_SECONDS = 1e-3
# A time limit of so many times the expected time needs no watching.
MARGIN = 100
REMEMBERED = 8

# Larger requests do not run on an event loop: even reading them takes long.
QUICK_BYTES = 16 * 1024

Arrays = Mapping[str, np.ndarray[Any, Any]]


class NotQuickError(Exception):
    """A request that has to be answered in a thread of its own."""


class Pace:
    """How long the latest runs of each signature took. Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[tuple[int, float], ...]] = {}

    def add(self, signature: str, size: int, seconds: float) -> None:
        """Remembers a run.

        Args:
            signature: The signature's name, one of the model's.
            size: How many elements its inputs had.
            seconds: How long it took.
        """
        # The tuple is replaced as a whole: of two threads that do so at once one is forgotten, which does no harm.
        self._runs[signature] = (*self._runs.get(signature, ())[1 - REMEMBERED :], (size, seconds))

    def expected(self, signature: str, size: int) -> float:
        """How many seconds a run should take: the least of the latest, as waiting for a processor only adds to them.

        Inputs larger than those seen are taken to need time in proportion. Infinite where none was seen.
        """
        least = float("inf")
        for seen, seconds in self._runs.get(signature, ()):
            needed = seconds if size <= seen else seconds * size / max(1, seen)
            if needed < least:
                least = needed
        return least


def elements(inputs: Arrays) -> int:
    """How many elements the inputs have together."""
    return sum(array.size for array in inputs.values())


def is_steady(graph: GraphDef) -> bool:
    """Whether a graph only ever computes straight on: without loops, and without waiting for anything.

    Such a graph needs time in proportion to its inputs, whatever values they have.
    """
    return not any(LASTING.search(node.op) for node in _nodes(graph))


def _nodes(graph: GraphDef) -> Iterable[NodeDef]:
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def
