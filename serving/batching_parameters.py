"""How requests are batched: TensorFlow Serving's BatchingParameters, read from text and checked."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, NoReturn

from serving import tls
from serving.errors import Code, ServingError
from serving.protos import BatchingParameters as BatchingParametersProto
from serving.settings import ServerSettings

FLAG = "batching_parameters_file"
PER_MODEL_FILE = "batching_params.pbtxt"
NO_THREAD_NAME = "TensorFlow's batching operation names its threads itself"
NO_PADDING = "TensorFlow's batching operation does not pad; requests of different lengths are batched apart"
THREADS_PER_CORE = 4
# One batch is computed while the next fills.
FULL_BATCHES = 2
# The scheduler of TensorFlow keeps these numbers in 32 bits.
LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class BatchingParameters:
    """When requests run together; the defaults are TensorFlow Serving's.

    Attributes:
        max_batch_size: The most rows of a batch, and of a request.
        batch_timeout_micros: How long a batch may wait to be filled, in microseconds. At 0 it takes what has come while
            the batches before it were computed.
        max_enqueued_batches: How many batches may wait; what comes on top is refused.
        num_batch_threads: How many batches of a version run at a time.
        enable_large_batch_splitting: Whether a request may be spread over several batches.
        max_execution_batch_size: The most rows of a batch where requests are split.
        allowed_batch_sizes: The sizes that the model sees, increasing: smaller batches are filled up with copies of a
            row. Empty for all sizes.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = dataclasses.field(default_factory=lambda: os.cpu_count() or 1)
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 1000
    allowed_batch_sizes: tuple[int, ...] = ()


def configured(settings: ServerSettings) -> BatchingParameters | None:
    """Returns how the flags ask to batch, or None where they do not.

    Raises:
        ServingError: INVALID_ARGUMENT, the file does not fit, or a flag lacks `enable_batching`.
    """
    path = settings.batching_parameters_file
    if not settings.enable_batching:
        for flag in (FLAG, "enable_per_model_batching_parameters"):
            if getattr(settings, flag):
                raise ServingError(
                    Code.INVALID_ARGUMENT, f"received {flag} without enable_batching, expected --enable_batching too"
                )
        return None
    return BatchingParameters() if path is None else read(path)


def of_model(folder: Path, common: BatchingParameters) -> BatchingParameters | None:
    """Reads a SavedModel's own `batching_params.pbtxt`.

    Args:
        folder: The SavedModel's folder.
        common: Says how many threads there are.

    Returns:
        How the model wants to be batched, or None where it has no such file.

    Raises:
        ServingError: INVALID_ARGUMENT, the file does not fit.
    """
    path = folder / PER_MODEL_FILE
    if not path.is_file():
        return None
    return dataclasses.replace(read(path, PER_MODEL_FILE), num_batch_threads=common.num_batch_threads)


def answering_threads(settings: ServerSettings) -> int:
    """How many threads answer the requests of a port: with batching, each request in a queue holds one.

    Raises:
        ServingError: INVALID_ARGUMENT, the settings of batching do not fit.
    """
    usual = THREADS_PER_CORE * (os.cpu_count() or 1)
    parameters = configured(settings)
    if parameters is None:
        return usual
    return max(usual, min(FULL_BATCHES * parameters.max_batch_size, settings.max_concurrent_requests))


def read(path: Path, kind: str = FLAG) -> BatchingParameters:
    """Reads BatchingParameters in text form.

    Args:
        path: The file.
        kind: What errors call it.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or does not fit.
    """
    message = tls.read_text_proto(path, kind, BatchingParametersProto())
    if message.HasField("thread_pool_name"):
        _refuse(path, "thread_pool_name", message.thread_pool_name.value, f"none: {NO_THREAD_NAME}")
    if message.pad_variable_length_inputs:
        _refuse(path, "pad_variable_length_inputs", True, f"false: {NO_PADDING}")
    given = {field.name: getattr(message, field.name).value for field, _ in message.ListFields() if field.message_type}
    parameters = BatchingParameters(
        **{"max_execution_batch_size": given.get("max_batch_size", BatchingParameters.max_batch_size)} | given,
        allowed_batch_sizes=tuple(message.allowed_batch_sizes),
    )
    _check_numbers(path, parameters)
    _check_sizes(path, parameters)
    return parameters


def _check_numbers(path: Path, parameters: BatchingParameters) -> None:
    names = ("max_batch_size", "max_enqueued_batches", "num_batch_threads", "max_execution_batch_size")
    for name, least in [*((name, 1) for name in names), ("batch_timeout_micros", 0)]:
        value = getattr(parameters, name)
        if not least <= value <= LARGEST:
            _refuse(path, name, value, f"a number from {least} to {LARGEST}")


def _check_sizes(path: Path, parameters: BatchingParameters) -> None:
    largest, execution = parameters.max_batch_size, parameters.max_execution_batch_size
    if execution != largest and not parameters.enable_large_batch_splitting:
        _refuse(path, "max_execution_batch_size", execution, "none without enable_large_batch_splitting")
    if execution > largest:
        _refuse(path, "max_execution_batch_size", execution, f"at most max_batch_size, {largest}")
    sizes = parameters.allowed_batch_sizes
    if any(size < 1 for size in sizes) or list(sizes) != sorted(set(sizes)):
        _refuse(path, "allowed_batch_sizes", list(sizes), "positive numbers, each larger than the one before")
    if sizes and sizes[-1] != execution:
        name = "max_batch_size" if execution == largest else "max_execution_batch_size"
        _refuse(path, "allowed_batch_sizes", list(sizes), f"the last to be {name}, {execution}")


def _refuse(path: Path, name: str, received: Any, expected: str) -> NoReturn:
    raise ServingError(Code.INVALID_ARGUMENT, f"{path}: received {name} {received}, expected {expected}")
