"""TensorFlow Serving's settings files: ModelServerConfig (which models to serve) and BatchingParameters."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tensorflow_serving.config.file_system_storage_path_source_pb2 import FileSystemStoragePathSourceConfig
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig as ModelConfigProto
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from serving.errors import invalid
from serving.protos import BatchingParameters as BatchingParametersProto
from serving.protos import read_text_proto
from serving.settings import PLATFORM, All, Latest, ModelConfig, ServerSettings, Specific, VersionPolicy


def configured_models(settings: ServerSettings) -> list[ModelConfig]:
    """Returns the models that the flags name: those in `model_config_file`, or the one at `model_base_path`.

    Raises:
        ServingError: INVALID_ARGUMENT, neither is given, or the file is invalid.
    """
    if settings.model_config_file is not None:
        return read_models(settings.model_config_file)
    if settings.model_base_path is None:
        raise invalid(
            "received neither model_base_path nor model_config_file, expected one of them: where are the models?"
        )
    return [ModelConfig(settings.model_name, settings.model_base_path.absolute())]


def read_models(path: Path) -> list[ModelConfig]:
    """Reads a ModelServerConfig in text form.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or is invalid.
    """
    return models_from_proto(read_text_proto(path, "model_config_file", ModelServerConfig()))


def models_from_proto(message: ModelServerConfig) -> list[ModelConfig]:
    """Reads a ModelServerConfig and checks it.

    Raises:
        ServingError: INVALID_ARGUMENT, a model is listed twice, or has a relative path, another platform or no policy.
    """
    if message.WhichOneof("config") == "custom_model_config":
        raise invalid("received custom_model_config, expected model_config_list")
    configs = [_config(config) for config in message.model_config_list.config]
    check_models(configs)
    return configs


def models_to_proto(configs: Sequence[ModelConfig]) -> ModelServerConfig:
    """Writes the models as a ModelServerConfig."""
    message = ModelServerConfig()
    for config in configs:
        proto = message.model_config_list.config.add(
            name=config.name, base_path=str(config.base_path), model_platform=config.platform
        )
        proto.version_labels.update(config.labels)
        if isinstance(config.policy, All):
            proto.model_version_policy.all.SetInParent()
        elif isinstance(config.policy, Specific):
            proto.model_version_policy.specific.versions.extend(config.policy.versions)
        else:
            proto.model_version_policy.latest.num_versions = config.policy.num_versions
    return message


def check_models(configs: Sequence[ModelConfig]) -> None:
    """Checks names, paths and platforms, and that no model is listed twice.

    Raises:
        ServingError: INVALID_ARGUMENT, with TensorFlow Serving's messages.
    """
    names: set[str] = set()
    for config in configs:
        if not config.name:
            raise invalid("received a model without a name, expected one")
        if config.name in names:
            message = f"Illegal to list model {config.name} multiple times in config list"
            raise invalid(message)
        names.add(config.name)
        if not config.base_path.is_absolute():
            raise invalid(
                f"Expected model {config.name} to have an absolute path or URI; got base_path()={config.base_path}"
            )
        if config.platform != PLATFORM:
            message = f"Model {config.name} requests unsupported platform {config.platform}"
            raise invalid(message)


def _config(message: ModelConfigProto) -> ModelConfig:
    platform = _platform(message)
    # Path would turn an empty path into the working folder.
    if not message.base_path:
        raise invalid(f"Expected model {message.name} to have an absolute path or URI; got base_path()=")
    return ModelConfig(
        message.name,
        Path(message.base_path),
        _policy(message.name, message.model_version_policy),
        dict(message.version_labels),
        platform,
    )


def _platform(message: ModelConfigProto) -> str:
    if message.model_type and message.model_platform:
        raise invalid(
            "Illegal setting both ModelServerConfig::model_type (deprecated) and ModelServerConfig::model_platform."
        )
    if message.model_type:
        return PLATFORM
    if not message.model_platform:
        raise invalid(
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor ModelServerConfig::model_platform."
        )
    return str(message.model_platform)


def _policy(name: str, message: FileSystemStoragePathSourceConfig.ServableVersionPolicy) -> VersionPolicy:
    choice = message.WhichOneof("policy_choice")
    if choice == "all":
        return All()
    if choice == "specific":
        if not message.specific.versions:
            text = f"received a specific version policy without versions for model {name}, expected at least one"
            raise invalid(text)
        return Specific(tuple(message.specific.versions))
    return Latest(max(1, message.latest.num_versions))


FLAG = "batching_parameters_file"
PER_MODEL_FILE = "batching_params.pbtxt"
NO_THREAD_NAME = "TensorFlow's batching operation names its threads itself"
NO_PADDING = "TensorFlow's batching operation does not pad; requests of different lengths are batched apart"
THREADS_PER_CORE = 4
# One batch is computed while the next one fills.
FULL_BATCHES = 2
# TensorFlow's scheduler holds these numbers in 32 bits.
LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class BatchingParameters:
    """When requests run together; the defaults are TensorFlow Serving's.

    Attributes:
        max_batch_size: The largest number of rows in a batch and in a request.
        batch_timeout_micros: How long a batch may wait to fill, in microseconds. At 0 it takes what has arrived while
            the batches before it were computed.
        max_enqueued_batches: How many batches may wait; requests beyond them are refused.
        num_batch_threads: How many batches of a version run at a time.
        enable_large_batch_splitting: Whether a request may be split over several batches.
        max_execution_batch_size: The largest number of rows in a batch where requests are split.
        allowed_batch_sizes: The sizes that the model sees, increasing: smaller batches are padded with copies of a row.
            Empty for all sizes.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = dataclasses.field(default_factory=lambda: os.cpu_count() or 1)
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 1000
    allowed_batch_sizes: tuple[int, ...] = ()


def configured_batching(settings: ServerSettings) -> BatchingParameters | None:
    """Returns the batching parameters that the flags ask for, or None if they do not ask for batching.

    Raises:
        ServingError: INVALID_ARGUMENT, the file is invalid, or a flag lacks `enable_batching`.
    """
    path = settings.batching_parameters_file
    if not settings.enable_batching:
        for flag in (FLAG, "enable_per_model_batching_parameters"):
            if getattr(settings, flag):
                raise invalid(f"received {flag} without enable_batching, expected --enable_batching too")
        return None
    return BatchingParameters() if path is None else read_batching(path)


def batching_of_model(folder: Path, common: BatchingParameters) -> BatchingParameters | None:
    """Reads a SavedModel's own `batching_params.pbtxt`.

    Args:
        folder: The SavedModel's folder.
        common: Gives the number of threads.

    Returns:
        The model's own parameters, or None if it has no such file.

    Raises:
        ServingError: INVALID_ARGUMENT, the file is invalid.
    """
    path = folder / PER_MODEL_FILE
    if not path.is_file():
        return None
    return dataclasses.replace(read_batching(path, PER_MODEL_FILE), num_batch_threads=common.num_batch_threads)


def answering_threads(settings: ServerSettings) -> int:
    """The number of threads that answer a port's requests; with batching, each request in a queue occupies one.

    Raises:
        ServingError: INVALID_ARGUMENT, the batching settings are invalid.
    """
    usual = THREADS_PER_CORE * (os.cpu_count() or 1)
    parameters = configured_batching(settings)
    if parameters is None:
        return usual
    return max(usual, min(FULL_BATCHES * parameters.max_batch_size, settings.max_concurrent_requests))


def read_batching(path: Path, kind: str = FLAG) -> BatchingParameters:
    """Reads BatchingParameters in text form.

    Args:
        path: The file.
        kind: What error messages call the file.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or is invalid.
    """
    message = read_text_proto(path, kind, BatchingParametersProto())
    if message.HasField("thread_pool_name"):
        _refuse(path, "thread_pool_name", message.thread_pool_name.value, f"none: {NO_THREAD_NAME}")
    if message.pad_variable_length_inputs:
        _refuse(path, "pad_variable_length_inputs", True, f"false: {NO_PADDING}")
    values = {field.name: getattr(message, field.name).value for field, _ in message.ListFields() if field.message_type}
    parameters = BatchingParameters(
        **{"max_execution_batch_size": values.get("max_batch_size", BatchingParameters.max_batch_size)} | values,
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
    raise invalid(f"{path}: received {name} {received}, expected {expected}")
