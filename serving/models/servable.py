"""A loaded version of a model, in a Session of its own as in TensorFlow Serving.

A Session answers in a tenth of the time of `tf.saved_model.load(...).signatures[...]`, runs what TensorFlow 1 exported,
and frees its memory when it is closed.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework.ops import dismantle_graph
from tensorflow.python.saved_model.loader_impl import SavedModelLoader

from serving.errors import Code, ServingError, clean, from_tensorflow, invalid
from serving.models.batching import BatchedSignature, batch_signatures
from serving.models.configuration import BatchingParameters
from serving.models.signatures import (
    MARGIN,
    QUICK_SECONDS,
    Arrays,
    Pace,
    Signature,
    TensorSpec,
    check_inputs,
    check_outputs,
    count_elements,
    fit_input,
    is_steady,
    read_signatures,
)
from serving.models.warm_up import replay

__all__ = ["Servable", "Signature", "TensorSpec", "load"]

CALLERS_THREAD = -1
log = logging.getLogger(__name__)


class Servable:
    """One loaded version. `run` may be called from any number of threads.

    Attributes:
        name: The model's name.
        version: The version's number.
        meta_graph: The SavedModel's tags and signatures as stored, without its graph.
        signatures: The signatures of all methods, by name.
    """

    def __init__(
        self,
        name: str,
        version: int,
        session: tf.compat.v1.Session,
        meta_graph: MetaGraphDef,
        callers_thread: bool,
        batched: Mapping[str, BatchedSignature],
        steady: bool,
    ) -> None:
        self.name = name
        self.version = version
        self.meta_graph = meta_graph
        self.signatures = read_signatures(meta_graph)
        self._session = session
        self._batched = batched
        self._tensors: dict[str, Any] = {}
        self._steady = steady
        self._pace = Pace()
        self._options = _options(None, callers_thread)

    def run(
        self, signature: str, inputs: Arrays, outputs: Sequence[str] | None = None, timeout: float | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Computes outputs of a signature.

        Args:
            signature: The signature's name.
            inputs: An array for each input of the signature, of its type; strings as objects or as NumPy's `S` and `U`.
                Shapes are left to the graph, which accepts more of them than signatures say.
            outputs: The outputs to compute; None or empty for all.
            timeout: Seconds after which the computation is given up. Without one it runs in the caller's thread; so it
                does if it is expected to end long before, and then the time is checked afterwards.

        Returns:
            The outputs by name; strings as arrays of `bytes` objects.

        Raises:
            ServingError: FAILED_PRECONDITION, there is no such signature; INVALID_ARGUMENT, a name or type does not
                match; DEADLINE_EXCEEDED, time is up; or an error that the graph raises about the values.
        """
        definition = self.signature(signature)
        names = list(outputs or definition.outputs)
        if outputs:
            check_outputs(definition, names)
        check_inputs(definition, inputs)
        arrays = {name: fit_input(definition, name, inputs[name]) for name in inputs}
        in_batches = self._batched.get(signature)
        if in_batches is not None:
            started = time.monotonic()
            values = in_batches.run(self._run_queued, arrays, names, timeout)
            if values is not None:
                return dict(zip(names, values, strict=True))
            timeout = None if timeout is None else timeout - (time.monotonic() - started)
        return dict(zip(names, self._run_alone(definition, arrays, names, timeout), strict=True))

    def run_together(
        self, outputs: Mapping[str, Sequence[str]], inputs: Arrays, timeout: float | None = None
    ) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        """Computes outputs of several signatures with the same inputs, in one run of the graph.

        Args:
            outputs: Signature -> the outputs to compute.
            inputs: As in `run`.
            timeout: As in `run`.

        Returns:
            The outputs by signature and name.

        Raises:
            ServingError: As in `run`.
        """
        feeds, fetches = {}, []
        for signature, names in outputs.items():
            definition = self.signature(signature)
            check_inputs(definition, inputs)
            feeds.update({self._tensor(definition.inputs[k]): fit_input(definition, k, inputs[k]) for k in inputs})
            fetches += [self._tensor(definition.outputs[name]) for name in names]
        values = iter(self._compute(feeds, fetches, timeout))
        return {signature: {name: next(values) for name in names} for signature, names in outputs.items()}

    def is_quick(self, signature: str, inputs: Arrays) -> bool:
        """Whether a run will take less than a millisecond and so need not be handed to a thread."""
        return self._is_expected_within(signature, count_elements(inputs), QUICK_SECONDS)

    def signature(self, name: str) -> Signature:
        """Returns the signature of that name.

        Raises:
            ServingError: FAILED_PRECONDITION, there is no such signature.
        """
        try:
            return self.signatures[name]
        except KeyError:
            raise ServingError(Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.') from None

    def close(self) -> None:
        """Frees the model's memory. No `run` may be in progress or follow."""
        graph = self._session.graph
        self._tensors.clear()
        self._session.close()
        del self._session
        # A Python graph is full of reference cycles: without this it would hold the model until a full collection.
        dismantle_graph(graph)

    def _run_alone(
        self, definition: Signature, arrays: Arrays, names: Sequence[str], timeout: float | None
    ) -> list[np.ndarray[Any, Any]]:
        feeds = {self._tensor(definition.inputs[name]): array for name, array in arrays.items()}
        fetches = [self._tensor(definition.outputs[name]) for name in names]
        size = count_elements(arrays)
        watched = timeout is not None and not self._is_expected_within(definition.name, size, timeout / MARGIN)
        started = time.perf_counter()
        values = self._compute(feeds, fetches, timeout if watched else None)
        seconds = time.perf_counter() - started
        self._pace.add(definition.name, size, seconds)
        if timeout is not None and seconds > timeout:
            raise ServingError(Code.DEADLINE_EXCEEDED, "The model took longer than the request's deadline allows.")
        return values

    def _compute(self, feeds: dict[Any, Any], fetches: list[Any], timeout: float | None) -> list[Any]:
        options = self._options if timeout is None else _options(_milliseconds(timeout), False)
        try:
            return self._run(options, feeds, fetches)
        except tf.errors.OpError as error:
            refusal = from_tensorflow(error)
            # An array of objects holds something other than bytes or str: TensorFlow reports an internal error.
            foreign = refusal.code is Code.INTERNAL and refusal.message.startswith("Unsupported object type")
            raise (ServingError(Code.INVALID_ARGUMENT, refusal.message) if foreign else refusal) from error
        except UnicodeDecodeError as error:
            # The runtime's message quotes what the client sent, which is not text; the status itself is lost.
            message = clean(bytes(error.object).decode("utf-8", "replace"))
            raise invalid(message) from error

    def _is_expected_within(self, signature: str, size: int, seconds: float) -> bool:
        """Whether a run is expected to take less than `seconds`, and nothing in its inputs can prolong it."""
        # A request in a batch waits for others.
        return self._steady and signature not in self._batched and self._pace.expected(signature, size) < seconds

    def _tensor(self, spec: TensorSpec) -> Any:
        tensor = self._tensors.get(spec.tensor_name)
        if tensor is None:
            try:
                tensor = self._session.graph.get_tensor_by_name(spec.tensor_name)._as_tf_output()
            except (KeyError, ValueError) as error:
                message = f'The graph has no tensor "{spec.tensor_name}", which a signature names.'
                raise ServingError(Code.FAILED_PRECONDITION, message) from error
            self._tensors[spec.tensor_name] = tensor
        return tensor

    def _run_queued(self, feeds: dict[Any, Any], fetches: list[Any], timeout: float | None) -> list[Any]:
        # The computation has threads of its own; the caller's thread only queues the request.
        return self._run(_options(None if timeout is None else _milliseconds(timeout), True), feeds, fetches)

    def _run(self, options: bytes, feeds: dict[Any, Any], fetches: list[Any]) -> list[Any]:
        # What Session.run calls in the end; Session.run spends four fifths of its time on parsing its arguments. Unlike
        # Session._make_callable_from_options, it takes a timeout with each call and shares one compiled graph.
        buffer = pywrap_tf_session.TF_NewBufferFromString(options)
        try:
            values = pywrap_tf_session.TF_SessionRun_wrapper(self._session._session, buffer, feeds, fetches, [], None)
        finally:
            pywrap_tf_session.TF_DeleteBuffer(buffer)
        return [_array(value) for value in values]


def load(
    name: str,
    version: int,
    path: Path,
    warm_up: bool = True,
    tags: Sequence[str] = ("serve",),
    intra_op_parallelism: int = 0,
    inter_op_parallelism: int = 0,
    batching: BatchingParameters | None = None,
) -> Servable:
    """Loads a SavedModel.

    Args:
        name: What requests call the model.
        version: The version's number.
        path: The SavedModel's folder.
        warm_up: Whether to replay the requests recorded in the SavedModel.
        tags: The tags of the MetaGraph to load.
        intra_op_parallelism: Threads within one operation; 0 for one per core.
        inter_op_parallelism: Threads across operations; 0 runs them in the caller's thread.
        batching: When to run requests together; None for never.

    Returns:
        The version, ready to answer.

    Raises:
        ServingError: The version cannot be loaded or warmed up.
    """
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=intra_op_parallelism,
        inter_op_parallelism_threads=inter_op_parallelism,
        allow_soft_placement=True,
    )
    if not any((path / file).is_file() for file in ("saved_model.pb", "saved_model.pbtxt")):
        message = f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {path}"
        raise ServingError(Code.NOT_FOUND, message)
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    meta_graph, steady = _restored(session, path, tags)
    in_batches = {}
    if batching is not None:
        in_batches = batch_signatures(session.graph, read_signatures(meta_graph), batching, f"{name} version {version}")
        session._extend_graph()
    session.graph.finalize()
    servable = Servable(name, version, session, meta_graph, not inter_op_parallelism, in_batches, steady)
    if warm_up:
        try:
            number = replay(servable.run, path)
        except ServingError:
            servable.close()
            raise
        log.info("Warmed %s version %d up with %d requests.", name, version, number)
    return servable


def _restored(session: tf.compat.v1.Session, path: Path, tags: Sequence[str]) -> tuple[MetaGraphDef, bool]:
    try:
        meta_graph = SavedModelLoader(str(path)).load(session, list(tags))
    except tf.errors.OpError as error:
        session.close()
        raise from_tensorflow(error) from error
    except Exception as error:
        # A broken graph can provoke any exception in the loader; each means that the version cannot be served.
        session.close()
        raise invalid(f"Could not load the SavedModel at {path}: {error}") from error
    # The graph is in the Session; a second copy would hold every weight of a frozen model again.
    without_graph = MetaGraphDef(signature_def=meta_graph.signature_def)
    without_graph.meta_info_def.tags.extend(meta_graph.meta_info_def.tags)
    return without_graph, is_steady(meta_graph.graph_def)


def _milliseconds(seconds: float) -> int:
    """Milliseconds for TensorFlow: at least one, since 0 means no limit."""
    return max(1, round(seconds * 1000))


def _array(value: Any) -> np.ndarray[Any, Any]:
    """A value from the runtime as an array; a scalar comes as bare bytes, whose trailing zeros np.asarray would cut."""
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


@functools.lru_cache(maxsize=1024)
def _options(timeout_ms: int | None, callers_thread: bool) -> bytes:
    options = tf.compat.v1.RunOptions(timeout_in_ms=timeout_ms or 0)
    if callers_thread:
        options.inter_op_thread_pool = CALLERS_THREAD
    return bytes(options.SerializeToString())
