"""gRPC's standard health service and server reflection, for probes and for tools such as grpcurl."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

from serving.protos import (
    HEALTH_SERVICE,
    REFLECTION_SERVICE,
    HealthCheckRequest,
    HealthCheckResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
)

SERVICES = [
    prediction_service_pb2.DESCRIPTOR.services_by_name["PredictionService"],
    model_service_pb2.DESCRIPTOR.services_by_name["ModelService"],
]
# TensorFlow Serving's health service knows them without their package; other clients expect the full name.
HEALTH_NAMES = {"", *(service.name for service in SERVICES), *(service.full_name for service in SERVICES)}


def health(ready: Callable[[], bool]) -> grpc.GenericRpcHandler:
    """Creates the health service.

    Args:
        ready: Returns whether the server answers requests now.
    """

    def check(request: Any, context: grpc.ServicerContext) -> Any:
        if request.service not in HEALTH_NAMES:
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}")
        status = HealthCheckResponse.SERVING if ready() else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=status)

    handler = grpc.unary_unary_rpc_method_handler(
        check, HealthCheckRequest.FromString, HealthCheckResponse.SerializeToString
    )
    return grpc.method_handlers_generic_handler(HEALTH_SERVICE, {"Check": handler})


def reflection() -> grpc.GenericRpcHandler:
    """Creates the reflection service (v1alpha, which every tool speaks)."""

    def info(requests: Iterator[Any], _: grpc.ServicerContext) -> Iterator[Any]:
        for request in requests:
            response = ServerReflectionResponse(valid_host=request.host, original_request=request)
            _reflect(request, response)
            yield response

    handler = grpc.stream_stream_rpc_method_handler(
        info, ServerReflectionRequest.FromString, ServerReflectionResponse.SerializeToString
    )
    return grpc.method_handlers_generic_handler(REFLECTION_SERVICE, {"ServerReflectionInfo": handler})


def _reflect(request: Any, response: Any) -> None:
    pool = descriptor_pool.Default()
    question = request.WhichOneof("message_request")
    try:
        if question == "list_services":
            for service in SERVICES:
                response.list_services_response.service.add(name=service.full_name)
        elif question == "file_by_filename":
            _add_files(pool.FindFileByName(request.file_by_filename), response)
        elif question == "file_containing_symbol":
            _add_files(pool.FindFileContainingSymbol(request.file_containing_symbol), response)
        else:
            _refuse(response, grpc.StatusCode.UNIMPLEMENTED, f"{question} is not answered here")
    except KeyError as error:
        _refuse(response, grpc.StatusCode.NOT_FOUND, str(error.args[0]))


def _add_files(file: FileDescriptor, response: Any) -> None:
    """Adds a file and all its dependencies, so that a tool need not ask again."""
    serialized: dict[str, bytes] = {}
    waiting = [file]
    while waiting:
        current = waiting.pop()
        if current.name not in serialized:
            serialized[current.name] = current.serialized_pb
            waiting.extend(current.dependencies)
    response.file_descriptor_response.file_descriptor_proto.extend(serialized.values())


def _refuse(response: Any, code: grpc.StatusCode, message: str) -> None:
    response.error_response.error_code = code.value[0]
    response.error_response.error_message = message
