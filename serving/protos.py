"""The messages that tensorflow-serving-api lacks: TF Serving's own settings files, health, reflection.

Their sources are tensorflow_serving/config/{ssl_config,monitoring_config}.proto and
tensorflow_serving/servables/tensorflow/session_bundle_config.proto of TF Serving 2.16.1 and
grpc/health/v1/health.proto and grpc/reflection/v1alpha/reflection.proto of gRPC; field numbers are theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, text_format, wrappers_pb2

from contracts.protobuf import message_class
from serving.errors import invalid

HEALTH_SERVICE = "grpc.health.v1.Health"
REFLECTION_SERVICE = "grpc.reflection.v1alpha.ServerReflection"

Type = descriptor_pb2.FieldDescriptorProto


def _message(name: str, *fields: tuple[str, int, int | str]) -> descriptor_pb2.DescriptorProto:
    """A message with (name, number, type) fields; a type is a constant of `Type` or a message's full name.

    A field whose name begins with `*` is repeated.
    """
    message = descriptor_pb2.DescriptorProto(name=name)
    for field_name, number, kind in fields:
        field = message.field.add(name=field_name.lstrip("*"), number=number)
        field.label = Type.LABEL_REPEATED if field_name.startswith("*") else Type.LABEL_OPTIONAL
        if isinstance(kind, str):
            field.type, field.type_name = Type.TYPE_MESSAGE, kind
        else:
            field.type = kind
    return message


def _health() -> descriptor_pb2.FileDescriptorProto:
    response = _message("HealthCheckResponse")
    statuses = response.enum_type.add(name="ServingStatus")
    for number, status in enumerate(("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")):
        statuses.value.add(name=status, number=number)
    response.field.add(
        name="status",
        number=1,
        label=Type.LABEL_OPTIONAL,
        type=Type.TYPE_ENUM,
        type_name=".grpc.health.v1.HealthCheckResponse.ServingStatus",
    )
    request = _message("HealthCheckRequest", ("service", 1, Type.TYPE_STRING))
    return descriptor_pb2.FileDescriptorProto(
        name="grpc/health/v1/health.proto", package="grpc.health.v1", syntax="proto3", message_type=[request, response]
    )


def _reflection() -> descriptor_pb2.FileDescriptorProto:
    package = "grpc.reflection.v1alpha"
    request = _message(
        "ServerReflectionRequest",
        ("host", 1, Type.TYPE_STRING),
        ("file_by_filename", 3, Type.TYPE_STRING),
        ("file_containing_symbol", 4, Type.TYPE_STRING),
        ("file_containing_extension", 5, f".{package}.ExtensionRequest"),
        ("all_extension_numbers_of_type", 6, Type.TYPE_STRING),
        ("list_services", 7, Type.TYPE_STRING),
    )
    response = _message(
        "ServerReflectionResponse",
        ("valid_host", 1, Type.TYPE_STRING),
        ("original_request", 2, f".{package}.ServerReflectionRequest"),
        ("file_descriptor_response", 4, f".{package}.FileDescriptorResponse"),
        ("list_services_response", 6, f".{package}.ListServiceResponse"),
        ("error_response", 7, f".{package}.ErrorResponse"),
    )
    for message in (request, response):
        message.oneof_decl.add(name="message_request" if message is request else "message_response")
        for field in message.field:
            if field.number > (2 if message is response else 1):
                field.oneof_index = 0
    parts = [
        _message(
            "ExtensionRequest", ("containing_type", 1, Type.TYPE_STRING), ("extension_number", 2, Type.TYPE_INT32)
        ),
        _message("FileDescriptorResponse", ("*file_descriptor_proto", 1, Type.TYPE_BYTES)),
        _message("ServiceResponse", ("name", 1, Type.TYPE_STRING)),
        _message("ListServiceResponse", ("*service", 1, f".{package}.ServiceResponse")),
        _message("ErrorResponse", ("error_code", 1, Type.TYPE_INT32), ("error_message", 2, Type.TYPE_STRING)),
    ]
    return descriptor_pb2.FileDescriptorProto(
        name="grpc/reflection/v1alpha/reflection.proto",
        package=package,
        syntax="proto3",
        message_type=[request, response, *parts],
    )


def _settings_files() -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto(
        name="tensorflow_serving/config/settings_files.proto",
        package="tensorflow.serving",
        syntax="proto3",
        message_type=[
            _message(
                "SSLConfig",
                ("server_key", 1, Type.TYPE_STRING),
                ("server_cert", 2, Type.TYPE_STRING),
                ("custom_ca", 3, Type.TYPE_STRING),
                ("client_verify", 4, Type.TYPE_BOOL),
            ),
            _message("PrometheusConfig", ("enable", 1, Type.TYPE_BOOL), ("path", 2, Type.TYPE_STRING)),
            _message("MonitoringConfig", ("prometheus_config", 1, ".tensorflow.serving.PrometheusConfig")),
        ],
    )


def _batching_parameters() -> descriptor_pb2.FileDescriptorProto:
    wrapped = {name: f".google.protobuf.{name}Value" for name in ("Int64", "String", "Bool")}
    return descriptor_pb2.FileDescriptorProto(
        name="tensorflow_serving/servables/tensorflow/session_bundle_config.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=[wrappers_pb2.DESCRIPTOR.name],
        message_type=[
            _message(
                "BatchingParameters",
                ("max_batch_size", 1, wrapped["Int64"]),
                ("batch_timeout_micros", 2, wrapped["Int64"]),
                ("max_enqueued_batches", 3, wrapped["Int64"]),
                ("num_batch_threads", 4, wrapped["Int64"]),
                ("thread_pool_name", 5, wrapped["String"]),
                ("*allowed_batch_sizes", 6, Type.TYPE_INT64),
                ("pad_variable_length_inputs", 7, Type.TYPE_BOOL),
                ("enable_large_batch_splitting", 8, wrapped["Bool"]),
                ("max_execution_batch_size", 9, wrapped["Int64"]),
            )
        ],
    )


def _wrappers() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(file)
    return file


# A separate pool, so that the default one accepts another installed package with the same messages.
_POOL = descriptor_pool.DescriptorPool()
for _file in (_health(), _reflection(), _settings_files(), _wrappers(), _batching_parameters()):
    _POOL.Add(_file)


def _class(name: str) -> Any:
    return message_class(_POOL.FindMessageTypeByName(name))


HealthCheckRequest = _class("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse = _class("grpc.health.v1.HealthCheckResponse")
ServerReflectionRequest = _class("grpc.reflection.v1alpha.ServerReflectionRequest")
ServerReflectionResponse = _class("grpc.reflection.v1alpha.ServerReflectionResponse")
SSLConfig = _class("tensorflow.serving.SSLConfig")
MonitoringConfig = _class("tensorflow.serving.MonitoringConfig")
BatchingParameters = _class("tensorflow.serving.BatchingParameters")


def read_text_proto(path: Path, flag: str, message: Any) -> Any:
    """Reads a protocol buffer in text form into `message` and returns it.

    Args:
        path: The file.
        flag: The flag that named it, for the error.
        message: An empty message.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or is invalid.
    """
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), message)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise invalid(f"received {flag} {path}, expected a {message.DESCRIPTOR.name} in text form: {error}") from error
