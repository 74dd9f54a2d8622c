"""TensorFlow Serving's PredictionService and ModelService over gRPC: an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import grpc
import uvloop
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from serving.batching_parameters import answering_threads
from serving.errors import Code, ServingError
from serving.grpc_call import Call, Method
from serving.metrics import Metrics
from serving.proto_handlers import ProtoHandlers
from serving.settings import ServerSettings

PREDICTION_SERVICE = "tensorflow.serving.PredictionService"
MODEL_SERVICE = "tensorflow.serving.ModelService"


class GrpcServer:
    """The gRPC port, and the UNIX socket.

    Args:
        settings: The server's settings.
        handlers: What the methods do.
        metrics: Where calls are counted.
        token: The bearer token that calls must bring, or None.
        others: Further services, such as health; these need no token.
        credentials: TLS, or None.

    Raises:
        ServingError: INVALID_ARGUMENT, `grpc_channel_arguments` do not fit.
    """

    def __init__(
        self,
        settings: ServerSettings,
        handlers: ProtoHandlers,
        metrics: Metrics,
        token: str | None,
        others: Iterable[grpc.GenericRpcHandler] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._options = _options(settings)
        self._most_calls = settings.max_concurrent_requests
        self._credentials = credentials
        threads = settings.grpc_max_threads or answering_threads(settings)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="grpc")
        services = [
            grpc.method_handlers_generic_handler(
                service,
                {
                    method.api: grpc.unary_unary_rpc_method_handler(Call(method, metrics, token, self._pool).answer)
                    for method in methods
                },
            )
            for service, methods in _services(handlers).items()
        ]
        self._handlers = [*services, *others]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: grpc.aio.Server | None = None

    def start(self, addresses: Iterable[str]) -> list[int]:
        """Opens these addresses and returns their ports.

        Raises:
            ServingError: UNAVAILABLE, one is taken.
        """
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="grpc", daemon=True)
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._open(list(addresses)), self._loop).result()

    def stop(self, patience: float) -> Callable[[], None]:
        """Takes no more calls; returns what waits for those in flight, for `patience` seconds at most."""
        loop = self._loop
        if loop is None:
            return self._pool.shutdown
        stopping = asyncio.run_coroutine_threadsafe(self._close(patience), loop)

        def wait() -> None:
            stopping.result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

        return wait

    async def _open(self, addresses: list[str]) -> list[int]:
        # The pool also runs the services that know nothing of event loops.
        self._server = grpc.aio.server(
            self._pool, self._handlers, options=self._options, maximum_concurrent_rpcs=self._most_calls
        )
        ports = [self._bind(self._server, address) for address in addresses]
        await self._server.start()
        return ports

    async def _close(self, patience: float) -> None:
        if self._server is not None:
            await self._server.stop(patience)

    def _bind(self, server: grpc.aio.Server, address: str) -> int:
        try:
            if self._credentials is None:
                return int(server.add_insecure_port(address))
            return int(server.add_secure_port(address, self._credentials))
        except RuntimeError as error:
            raise ServingError(Code.UNAVAILABLE, f"gRPC cannot listen on {address}: is it taken?") from error


def _services(handlers: ProtoHandlers) -> dict[str, list[Method]]:
    return {
        PREDICTION_SERVICE: [
            Method("Predict", PredictRequest, handlers.predict, quickly=handlers.predict_quickly),
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
