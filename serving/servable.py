"""One version of a model, loaded: a Session of its own, as TensorFlow Serving has it.

A Session answers in a tenth of the time of `tf.saved_model.load(...).signatures[...]`, runs what TensorFlow 1 exported,
and gives its memory back when it closes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework.ops import dismantle_graph
from tensorflow.python.saved_model.loader_impl import SavedModelLoader

from serving.errors import Code, ServingError, from_tensorflow

CALLERS_THREAD = -1
NOT_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
STRING_KINDS = frozenset("OSU")


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


class Servable:
    """One loaded version. `run` may be called from any number of threads.

    Attributes:
        name: The model's name.
        version: The version's number.
        meta_graph: What the SavedModel says of itself.
        signatures: The signatures by name, of all methods.
    """

    def __init__(
        self, name: str, version: int, session: tf.compat.v1.Session, meta_graph: MetaGraphDef, callers_thread: bool
    ) -> None:
        self.name = name
        self.version = version
        self.meta_graph = meta_graph
        self.signatures = {
            key: _signature(key, definition)
            for key, definition in sorted(meta_graph.signature_def.items())
            if key not in NOT_SIGNATURES
        }
        self._session = session
        self._handles: dict[str, Any] = {}
        self._options = tf.compat.v1.RunOptions(inter_op_thread_pool=CALLERS_THREAD) if callers_thread else None
        self._options_bytes = None if self._options is None else self._options.SerializeToString()

    def run(
        self,
        signature: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Computes outputs of a signature.

        Args:
            signature: The signature's name.
            inputs: An array for each input of the signature, of its type; strings as objects or as NumPy's `S` and `U`.
                Shapes are the graph's business: it takes more of them than signatures say.
            outputs: Which outputs to compute; None or empty for all.
            timeout: Seconds after which the computation is given up. Without one it runs in the caller's thread.

        Returns:
            The outputs by name; strings as arrays of `bytes` objects.

        Raises:
            ServingError: A name or a type does not fit, the graph refuses the values, or time is up.
        """
        definition = self.signature(signature)
        names = list(outputs) if outputs else list(definition.outputs)
        _check_outputs(definition, names)
        feeds = self._feeds(definition, inputs)
        fetches = [self._handle(definition.outputs[name]) for name in names]
        with _translated():
            return dict(zip(names, self._run(feeds, fetches, timeout), strict=True))

    def signature(self, name: str) -> Signature:
        """Returns the signature of that name.

        Raises:
            ServingError: FAILED_PRECONDITION, there is none.
        """
        try:
            return self.signatures[name]
        except KeyError:
            raise ServingError(Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.') from None

    def close(self) -> None:
        """Frees the model's memory. Nothing may run any more."""
        graph = self._session.graph
        self._handles.clear()
        self._session.close()
        del self._session
        dismantle_graph(graph)

    def _feeds(self, signature: Signature, inputs: Mapping[str, np.ndarray[Any, Any]]) -> dict[Any, Any]:
        _check_names(signature, inputs)
        return {
            self._handle(signature.inputs[name]): _fitting(signature, name, value) for name, value in inputs.items()
        }

    def _handle(self, spec: TensorSpec) -> Any:
        handle = self._handles.get(spec.tensor_name)
        if handle is None:
            try:
                handle = self._session.graph.get_tensor_by_name(spec.tensor_name)._as_tf_output()
            except (KeyError, ValueError) as error:
                raise ServingError(
                    Code.FAILED_PRECONDITION, f'The graph has no tensor "{spec.tensor_name}".'
                ) from error
            self._handles[spec.tensor_name] = handle
        return handle

    def _run(self, feeds: dict[Any, Any], fetches: list[Any], timeout: float | None) -> list[Any]:
        # Session.run spends four fifths of its time on taking its arguments apart; this is what it calls at the end.
        if timeout is None:
            options = self._options_bytes
        else:
            milliseconds = max(1, round(timeout * 1000))
            options = tf.compat.v1.RunOptions(timeout_in_ms=milliseconds).SerializeToString()
        if options is None:
            return list(pywrap_tf_session.TF_SessionRun_wrapper(self._session._session, None, feeds, fetches, [], None))
        buffer = pywrap_tf_session.TF_NewBufferFromString(options)
        try:
            return list(
                pywrap_tf_session.TF_SessionRun_wrapper(self._session._session, buffer, feeds, fetches, [], None)
            )
        finally:
            pywrap_tf_session.TF_DeleteBuffer(buffer)


def load(
    name: str,
    version: int,
    path: Path,
    warm_up: bool = True,
    tags: Sequence[str] = ("serve",),
    intra_op_parallelism: int = 0,
    inter_op_parallelism: int = 0,
) -> Servable:
    """Loads a SavedModel.

    Args:
        name: What requests call the model.
        version: The version's number.
        path: The SavedModel's folder.
        warm_up: Whether to replay the requests recorded in it.
        tags: The tags of the MetaGraph to load.
        intra_op_parallelism: Threads within one operation; 0 for one per core.
        inter_op_parallelism: Threads among operations; 0 to run in the threads that ask.

    Returns:
        The version, ready to answer.

    Raises:
        ServingError: It cannot be loaded or warmed up.
    """
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=intra_op_parallelism,
        inter_op_parallelism_threads=inter_op_parallelism,
        allow_soft_placement=True,
    )
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph, config=config)
    try:
        with _translated():
            meta_graph = SavedModelLoader(str(path)).load(session, list(tags))
        graph.finalize()
        return Servable(name, version, session, meta_graph, callers_thread=not inter_op_parallelism)
    except Exception:
        session.close()
        raise


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as error:
        raise from_tensorflow(error) from error


def _check_names(signature: Signature, inputs: Mapping[str, Any]) -> None:
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


def _check_outputs(signature: Signature, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name not in signature.outputs:
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"output tensor alias not found in signature: {name} Outputs expected to be in the set "
                f"{_names(signature.outputs)}.",
            )
        if name in names[:index]:
            raise ServingError(Code.INVALID_ARGUMENT, f"duplicate output tensor alias: {name}")


def _names(names: Any) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _fitting(signature: Signature, name: str, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    expected = signature.inputs[name].dtype
    if expected == tf.string and value.dtype.kind in STRING_KINDS:
        return value if value.dtype.kind == "O" else value.astype(object)
    if expected != tf.string and value.dtype == expected.as_numpy_dtype:
        return value
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
