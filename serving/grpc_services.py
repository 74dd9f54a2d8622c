"""TensorFlow Serving's PredictionService and ModelService over gRPC."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from serving import access
from serving.batching_parameters import answering_threads
from serving.errors import Code, ServingError
from serving.metrics import Metrics
from serving.proto_handlers import ProtoHandlers
from serving.settings import ServerSettings

PREDICTION_SERVICE = "tensorflow.serving.PredictionService"
MODEL_SERVICE = "tensorflow.serving.ModelService"
ENTRYPOINT = "GRPC"
MAX_DETAILS = 1024
# A call without a deadline reads as one in the far future.
NO_DEADLINE_SECONDS = 1e8
GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Method:
    """One method of a service.

    Attributes:
        api: Its name, such as `Predict`.
        request: The class of its request.
        answer: Answers a request, given the seconds until the client gives up (or None).
        model: Says which model a request is about.
        counted: Whether TensorFlow Serving's metrics count it.
    """

    api: str
    request: Any
    answer: Callable[[Any, float | None], Any]
    model: Callable[[Any], str] = lambda request: str(request.model_spec.name)
    counted: bool = True


class Call:
    """Answers the calls of one method: checks the token, keeps the deadline, counts, and writes the access log.

    Args:
        method: The method.
        metrics: Where calls are counted.
        token: The bearer token that a call must bring, or None.
    """

    def __init__(self, method: Method, metrics: Metrics, token: str | None) -> None:
        self._method = method
        self._metrics = metrics
        self._token = token

    def __call__(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        """Answers a serialized request with a serialized response, or ends the call with an error's status."""
        started = time.perf_counter_ns()
        headers = dict(context.invocation_metadata())
        identity = access.request_id(headers.get(access.REQUEST_ID_HEADER))
        context.set_trailing_metadata(((access.REQUEST_ID_HEADER, identity),))
        self._metrics.in_flight.add((ENTRYPOINT,))
        request, response, error = None, b"", None
        try:
            access.authorize(headers.get(access.AUTHORIZATION_HEADER), self._token)
            request = self._parse(data)
            response = self._method.answer(request, _seconds_left(context)).SerializeToString()
        except ServingError as refusal:
            error = refusal
        except Exception:
            log.exception("Request %s failed", identity)
            error = ServingError(Code.INTERNAL, f"internal error; the server's log says more of request {identity}")
        finally:
            self._metrics.in_flight.add((ENTRYPOINT,), -1)
        self._record(request, identity, error, (time.perf_counter_ns() - started) / 1000)
        if error:
            context.abort(GRPC_CODES[error.code.number], details(error.message))
        return response

    def _parse(self, data: bytes) -> Any:
        request, cause = self._method.request(), None
        try:
            # At an end of a group that never began, protobuf stops and only warns.
            if request.ParseFromString(data) == len(data):
                return request
        except DecodeError as error:
            cause = error
        name = self._method.request.DESCRIPTOR.full_name
        raise ServingError(Code.INVALID_ARGUMENT, f"the request is not a {name}") from cause

    def _record(self, request: Any, identity: str, error: ServingError | None, microseconds: float) -> None:
        model = "" if request is None else self._method.model(request)
        if self._method.counted:
            status = error.code if error else Code.OK
            self._metrics.request(model, self._method.api, ENTRYPOINT, status.name, microseconds)
        access.log_request(identity, ENTRYPOINT, self._method.api, model, microseconds / 1000, error)


def details(message: str) -> str:
    """An error's message as a gRPC status carries it: TensorFlow Serving cuts at 1024 characters, and says so."""
    return message if len(message) <= MAX_DETAILS else f"{message[:MAX_DETAILS]}...TRUNCATED"


def make_server(
    settings: ServerSettings,
    handlers: ProtoHandlers,
    metrics: Metrics,
    token: str | None,
    others: Iterable[grpc.GenericRpcHandler] = (),
) -> grpc.Server:
    """Makes a server without a port yet.

    Args:
        settings: The server's settings.
        handlers: What the methods do.
        metrics: Where calls are counted.
        token: The bearer token that calls must bring, or None.
        others: Further services, such as health; these need no token.
    """
    threads = settings.grpc_max_threads or answering_threads(settings)
    services = [
        grpc.method_handlers_generic_handler(
            service,
            {method.api: grpc.unary_unary_rpc_method_handler(Call(method, metrics, token)) for method in methods},
        )
        for service, methods in _services(handlers).items()
    ]
    return grpc.server(
        ThreadPoolExecutor(threads, thread_name_prefix="grpc"),
        handlers=[*services, *others],
        options=_options(settings),
        maximum_concurrent_rpcs=settings.max_concurrent_requests,
    )


def _services(handlers: ProtoHandlers) -> dict[str, list[Method]]:
    return {
        PREDICTION_SERVICE: [
            Method("Predict", PredictRequest, handlers.predict),
            Method("Classify", ClassificationRequest, handlers.classify),
            Method("Regress", RegressionRequest, handlers.regress),
            Method("MultiInference", MultiInferenceRequest, handlers.multi_inference, _first_model),
            Method("GetModelMetadata", GetModelMetadataRequest, handlers.model_metadata, counted=False),
        ],
        MODEL_SERVICE: [
            Method("GetModelStatus", GetModelStatusRequest, handlers.model_status, counted=False),
            Method("HandleReloadConfigRequest", ReloadConfigRequest, handlers.reload_config, lambda _: "", False),
        ],
    }


def _first_model(request: MultiInferenceRequest) -> str:
    return str(request.tasks[0].model_spec.name) if request.tasks else ""


def _options(settings: ServerSettings) -> list[tuple[str, int | str]]:
    """gRPC's own options; those of `grpc_channel_arguments` come last and win."""
    options: dict[str, int | str] = {
        "grpc.max_receive_message_length": settings.max_request_bytes,
        "grpc.max_send_message_length": -1,
        # Two servers on one port would each get half of the requests, and nobody would notice.
        "grpc.so_reuseport": 0,
    }
    for argument in filter(None, settings.grpc_channel_arguments.split(",")):
        key, equals, value = argument.partition("=")
        if not (key and equals):
            raise ServingError(
                Code.INVALID_ARGUMENT,
                f"received grpc_channel_arguments {argument!r}, expected key=value pairs separated by commas",
            )
        options[key] = int(value) if value.lstrip("-").isdecimal() else value
    return list(options.items())


def _seconds_left(context: grpc.ServicerContext) -> float | None:
    left = context.time_remaining()
    if left is None or left > NO_DEADLINE_SECONDS:
        return None
    if left <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, "the deadline passed before the request was looked at")
    return float(left)
