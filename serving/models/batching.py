"""Runs requests of several clients together with TensorFlow's own scheduler, and separately where they do not fit.

Requests share a batch only if all dimensions but the first agree. A failed batch does not show which request is bad:
each is run again by itself, and only the bad one fails, with its own error.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from serving.errors import Code, ServingError, from_tensorflow, invalid
from serving.models.batch_graph import BatchedGraph, NotBatchableError, wrap_signature
from serving.models.configuration import BatchingParameters
from serving.models.signatures import Arrays, Signature

# How many combinations of inner shapes can be batched at a time; requests of others run by themselves.
QUEUES = 4
WRONG_OUTPUT = "Batched output tensor"
QUEUE_FULL = "The batch scheduling queue"

Shapes = tuple[tuple[int, ...], ...]
# Feeds, fetches and a time limit in seconds or None; returns the fetched arrays.
Run = Callable[[dict[Any, Any], list[Any], "float | None"], list[np.ndarray[Any, Any]]]
log = logging.getLogger(__name__)


class Queues:
    """Lends queues to inner shapes, so that all requests in a queue at any time have the same shapes.

    Args:
        number: How many queues there are.
    """

    def __init__(self, number: int) -> None:
        self._free = list(range(number))
        self._lent: dict[Shapes, list[int]] = {}
        self._lock = threading.Lock()

    def take(self, shapes: Shapes) -> int | None:
        """Returns the queue for these shapes, or None if other shapes have taken them all."""
        with self._lock:
            lent = self._lent.get(shapes)
            if lent is None:
                if not self._free:
                    return None
                lent = self._lent[shapes] = [self._free.pop(0), 0]
            lent[1] += 1
            return lent[0]

    def give_back(self, shapes: Shapes) -> None:
        """Gives back what `take` returned."""
        with self._lock:
            lent = self._lent[shapes]
            lent[1] -= 1
            if not lent[1]:
                del self._lent[shapes]
                self._free.insert(0, lent[0])


class BatchedSignature:
    """A signature that runs in batches. `run` may be called from any number of threads.

    Args:
        signature: The signature.
        graph: What to feed and fetch.
        parameters: When requests run together.
    """

    def __init__(self, signature: Signature, graph: BatchedGraph, parameters: BatchingParameters) -> None:
        self._signature = signature
        self._graph = graph
        self._max_batch_size = parameters.max_batch_size
        self._queues = Queues(len(graph.queues))
        self._in_use = True
        self._has_failed = False

    def run(
        self, run: Run, inputs: Arrays, outputs: Sequence[str], timeout: float | None
    ) -> list[np.ndarray[Any, Any]] | None:
        """Computes outputs in a batch.

        Args:
            run: Computes in the version's Session.
            inputs: The inputs by name, of the signature's types.
            outputs: The names of the outputs.
            timeout: Seconds after which the computation is given up, or None.

        Returns:
            The outputs in the order of `outputs`, or None if the request has to be run by itself.

        Raises:
            ServingError: INVALID_ARGUMENT, there are more rows than a batch may have; UNAVAILABLE, the queue is full;
                DEADLINE_EXCEEDED.
        """
        arrays = [inputs[name] for name in self._signature.inputs]
        rows = _rows(arrays)
        if not rows or not self._in_use:
            return None
        if rows > self._max_batch_size:
            message = f"Task size {rows} is larger than maximum input batch size {self._max_batch_size}"
            raise invalid(message)
        shapes = tuple(array.shape[1:] for array in arrays)
        queue = self._queues.take(shapes)
        if queue is None:
            return None
        fetches = self._graph.queues[queue]
        feeds = dict(zip(self._graph.feeds.values(), arrays, strict=True))
        started = time.monotonic()
        try:
            return run(feeds, [fetches[name] for name in outputs], timeout)
        except (tf.errors.OpError, UnicodeDecodeError) as error:
            self._check_failure(error, None if timeout is None else timeout - (time.monotonic() - started))
            return None
        finally:
            self._queues.give_back(shapes)

    def _check_failure(self, error: tf.errors.OpError | UnicodeDecodeError, seconds_left: float | None) -> None:
        """Raises an error that concerns this request itself, not a neighbour in the batch."""
        message = getattr(error, "message", None) or ""
        if message.startswith(QUEUE_FULL):
            raise from_tensorflow(error) from error
        if seconds_left is not None and seconds_left <= 0:
            raise ServingError(Code.DEADLINE_EXCEEDED, "Timed out waiting for the batch.") from error
        if message.startswith(WRONG_OUTPUT):
            self._in_use = False
            log.warning(
                "Signature %s is no longer batched, since its outputs do not have a row for each row of its inputs.",
                self._signature.name,
            )
        elif not self._has_failed:
            # A client's bad requests must not fill the log, but a model that never runs in batches should be seen.
            self._has_failed = True
            reason = (
                from_tensorflow(error).message if isinstance(error, tf.errors.OpError) else "its message is not text"
            )
            log.info("A batch of %s failed, and its requests ran by themselves: %s", self._signature.name, reason)


def batch_signatures(
    graph: tf.Graph, signatures: Mapping[str, Signature], parameters: BatchingParameters, version: str
) -> dict[str, BatchedSignature]:
    """Adds batching to a version's graph.

    Args:
        graph: The graph that the version was loaded into; not yet finalized.
        signatures: Its signatures by name.
        parameters: When requests run together.
        version: What the log calls the version.

    Returns:
        Name -> batched signature, for those that can be batched; the log says why others cannot.
    """
    in_batches = {}
    for name, signature in signatures.items():
        try:
            in_batches[name] = BatchedSignature(
                signature, wrap_signature(graph, signature, parameters, QUEUES), parameters
            )
        except NotBatchableError as error:
            log.info("Signature %s of %s is not batched: %s.", name, version, error)
    return in_batches


def _rows(arrays: Sequence[np.ndarray[Any, Any]]) -> int | None:
    """The first dimension of the arrays, or None if they do not share it."""
    firsts = {array.shape[:1] for array in arrays}
    first = firsts.pop()
    return first[0] if first and not firsts else None
