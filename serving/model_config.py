"""TensorFlow Serving's ModelServerConfig, as text or as a message, read into our settings and written back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config.file_system_storage_path_source_pb2 import FileSystemStoragePathSourceConfig
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig as ModelConfigProto
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from serving.errors import Code, ServingError
from serving.settings import PLATFORM, All, Latest, ModelConfig, ServerSettings, Specific, VersionPolicy


def configured(settings: ServerSettings) -> list[ModelConfig]:
    """Returns the models that the flags name: those of `model_config_file`, or the one at `model_base_path`.

    Raises:
        ServingError: INVALID_ARGUMENT, neither is given, or the file does not fit.
    """
    if settings.model_config_file is not None:
        return read(settings.model_config_file)
    if settings.model_base_path is None:
        raise ServingError(
            Code.INVALID_ARGUMENT,
            "received neither model_base_path nor model_config_file, expected one of them: where do the models lie?",
        )
    return [ModelConfig(settings.model_name, settings.model_base_path.absolute())]


def read(path: Path) -> list[ModelConfig]:
    """Reads a ModelServerConfig in text form.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or does not fit.
    """
    message = ModelServerConfig()
    try:
        text_format.Parse(path.read_text(encoding="utf-8"), message)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise ServingError(
            Code.INVALID_ARGUMENT,
            f"received model_config_file {path}, expected a ModelServerConfig in text form: {error}",
        ) from error
    return from_proto(message)


def from_proto(message: ModelServerConfig) -> list[ModelConfig]:
    """Reads a ModelServerConfig and checks it.

    Raises:
        ServingError: INVALID_ARGUMENT, a model is listed twice, or has a relative path, another platform or no policy.
    """
    if message.WhichOneof("config") == "custom_model_config":
        raise ServingError(Code.INVALID_ARGUMENT, "received custom_model_config, expected model_config_list")
    configs = [_config(config) for config in message.model_config_list.config]
    check(configs)
    return configs


def to_proto(configs: Sequence[ModelConfig]) -> ModelServerConfig:
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


def check(configs: Sequence[ModelConfig]) -> None:
    """Checks what no model can say about itself alone, and the paths and platforms.

    Raises:
        ServingError: INVALID_ARGUMENT, with TensorFlow Serving's texts.
    """
    names: set[str] = set()
    for config in configs:
        if not config.name:
            raise ServingError(Code.INVALID_ARGUMENT, "received a model without a name, expected one")
        if config.name in names:
            message = f"Illegal to list model {config.name} multiple times in config list"
            raise ServingError(Code.INVALID_ARGUMENT, message)
        names.add(config.name)
        if not config.base_path.is_absolute():
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"Expected model {config.name} to have an absolute path or URI; got base_path()={config.base_path}",
            )
        if config.platform != PLATFORM:
            message = f"Model {config.name} requests unsupported platform {config.platform}"
            raise ServingError(Code.INVALID_ARGUMENT, message)


def _config(message: ModelConfigProto) -> ModelConfig:
    platform = _platform(message)
    # Path would make an empty path the working folder.
    if not message.base_path:
        raise ServingError(
            Code.INVALID_ARGUMENT, f"Expected model {message.name} to have an absolute path or URI; got base_path()="
        )
    return ModelConfig(
        message.name,
        Path(message.base_path),
        _policy(message.name, message.model_version_policy),
        dict(message.version_labels),
        platform,
    )


def _platform(message: ModelConfigProto) -> str:
    if message.model_type and message.model_platform:
        raise ServingError(
            Code.INVALID_ARGUMENT,
            "Illegal setting both ModelServerConfig::model_type (deprecated) and ModelServerConfig::model_platform.",
        )
    if message.model_type:
        return PLATFORM
    if not message.model_platform:
        raise ServingError(
            Code.INVALID_ARGUMENT,
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor ModelServerConfig::model_platform.",
        )
    return str(message.model_platform)


def _policy(name: str, message: FileSystemStoragePathSourceConfig.ServableVersionPolicy) -> VersionPolicy:
    choice = message.WhichOneof("policy_choice")
    if choice == "all":
        return All()
    if choice == "specific":
        if not message.specific.versions:
            text = f"received a specific version policy without versions for model {name}, expected at least one"
            raise ServingError(Code.INVALID_ARGUMENT, text)
        return Specific(tuple(message.specific.versions))
    return Latest(max(1, message.latest.num_versions))
