"""What a REST request means: method, path and body in, status, type and body out.

Routes, answers and texts are those of TensorFlow Serving 2.16.1 (model_servers/http_rest_api_handler.cc,
http_rest_api_util.cc). Nothing here knows of sockets or event loops.
"""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from google.protobuf.json_format import MessageToJson
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from serving import examples, json_codec, json_output
from serving.errors import Code, ServingError
from serving.manager import Manager, ModelRequest
from serving.metrics import Metrics
from serving.pace import NotQuickError
from serving.proto_handlers import DEFAULT_SIGNATURE, RUNTIME, SIGNATURE_FIELD, ProtoHandlers

WHICH = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
PREDICTION = re.compile(rf"/v1/models/(?P<name>[^/:]+){WHICH}:(?P<verb>classify|regress|predict)", re.IGNORECASE)
STATUS = re.compile(rf"/v1/models(?:/(?P<name>[^/:]+))?{WHICH}(?:/(?P<metadata>metadata))?", re.IGNORECASE)
PREDICT = "predict"
JSON = "application/json"
MAX_VERSION = 2**63 - 1
REMEMBERED_ROUTES = 256
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """An answer before it is sent.

    Attributes:
        code: How it ended.
        body: What the client reads.
        model: The model's name, empty where the path has none.
        api: `predict`, `classify` or `regress`; empty for others.
        message: Why the request was refused; empty where it was not.
        quick: Whether one of its size could be answered on the event loop.
    """

    code: Code
    body: bytes
    model: str = ""
    api: str = ""
    message: str = ""
    quick: bool = False


def refusal(error: ServingError, model: str = "", api: str = "") -> Answer:
    """The answer that tells a client of an error."""
    return Answer(error.code, json_output.error(error.message), model, api, error.message)


class RestApi:
    """Answers REST requests below `/v1/`; safe to call from any number of threads.

    Args:
        manager: Gives out the loaded versions.
        handlers: Answers classify, regress, status and metadata.
        metrics: Where time in TensorFlow is recorded.
    """

    def __init__(self, manager: Manager, handlers: ProtoHandlers, metrics: Metrics) -> None:
        self._manager = manager
        self._handlers = handlers
        self._metrics = metrics
        self._verbs: dict[str, Callable[[bytes, ModelRequest, float], bytes]] = {
            "classify": self._classify,
            "regress": self._regress,
        }

    def answer(self, method: str, path: str, body: bytes, deadline: float, on_loop: bool = False) -> Answer:
        """Answers one request.

        Args:
            method: `GET`, `POST`, …
            path: The path as it came, without the query.
            body: The inflated body.
            deadline: When the client gives up, on `time.monotonic`'s clock.
            on_loop: Whether others wait while this runs.

        Raises:
            NotQuickError: `on_loop`, and the answer would take too long for that. There is no other error.
        """
        found, name, verb = _route(method, path)
        try:
            if found is None or (verb and verb != PREDICT and verb not in self._verbs):
                raise ServingError(Code.INVALID_ARGUMENT, f"Malformed request: {method} {path}")
            request = _model_request(name, found)
            if verb == PREDICT:
                text, quick = self._predict(body, request, deadline, on_loop)
                return Answer(Code.OK, text, name, verb, quick=quick)
            if on_loop:
                raise NotQuickError
            if verb:
                text = self._verbs[verb](body, request, deadline)
            elif found["metadata"] == "metadata":
                text = self._metadata(request)
            else:
                text = self._status(request)
            return Answer(Code.OK, text, name, verb)
        except ServingError as error:
            return refusal(error, name, verb)
        except NotQuickError:
            raise
        except Exception:
            # Whatever goes wrong, the client reads a status and the log has the rest.
            log.exception("%s %s failed.", method, path)
            return refusal(ServingError(Code.INTERNAL, "The server failed; its log says why."), name, verb)

    def _predict(self, body: bytes, request: ModelRequest, deadline: float, on_loop: bool) -> tuple[bytes, bool]:
        document = json_codec.parse(body)
        name = json_codec.signature_name(document) or DEFAULT_SIGNATURE
        with self._manager.use(request) as servable:
            signature = servable.signatures.get(name)
            if signature is None:
                raise ServingError(
                    Code.INVALID_ARGUMENT, f'Serving signature name: "{name}" not found in signature def'
                )
            inputs, by_rows = json_codec.predict_inputs(document, signature.inputs)
            if on_loop and not servable.is_quick(name, inputs):
                raise NotQuickError
            started = time.perf_counter()
            outputs = servable.run(name, inputs, None, _left(deadline))
            elapsed = (time.perf_counter() - started) * 1e6
            quick = on_loop or servable.is_quick(name, inputs)
        self._metrics.runtime_latency.add((request.name, "Predict", RUNTIME), elapsed)
        return (json_output.predictions(outputs) if by_rows else json_output.columns(outputs)), quick

    def _classify(self, body: bytes, request: ModelRequest, deadline: float) -> bytes:
        document = json_codec.parse(body)
        spec = _spec(request, json_codec.signature_name(document))
        asked = ClassificationRequest(model_spec=spec, input=examples.to_input(document))
        return examples.classification_json(self._handlers.classify(asked, _left(deadline)).result)

    def _regress(self, body: bytes, request: ModelRequest, deadline: float) -> bytes:
        document = json_codec.parse(body)
        spec = _spec(request, json_codec.signature_name(document))
        asked = RegressionRequest(model_spec=spec, input=examples.to_input(document))
        return examples.regression_json(self._handlers.regress(asked, _left(deadline)).result)

    def _status(self, request: ModelRequest) -> bytes:
        _check_named(request)
        response = self._handlers.model_status(GetModelStatusRequest(model_spec=_spec(request)))
        text: str = MessageToJson(response, including_default_value_fields=True)
        return f"{text}\n".encode()

    def _metadata(self, request: ModelRequest) -> bytes:
        _check_named(request)
        response = self._handlers.model_metadata(
            GetModelMetadataRequest(model_spec=_spec(request), metadata_field=[SIGNATURE_FIELD])
        )
        signatures = SignatureDefMap()
        response.metadata[SIGNATURE_FIELD].Unpack(signatures)
        spec, definitions = (
            MessageToJson(message, including_default_value_fields=True, preserving_proto_field_name=True)
            for message in (response.model_spec, signatures)
        )
        return f'{{\n"model_spec":{spec}\n,\n"metadata": {{"signature_def": {definitions}\n}}\n}}\n'.encode()


@functools.lru_cache(maxsize=REMEMBERED_ROUTES)
def _route(method: str, path: str) -> tuple[re.Match[str] | None, str, str]:
    """The parts of a path, None where it is none of ours; the model's name and the verb, empty where there are none."""
    pattern = {"POST": PREDICTION, "GET": STATUS}.get(method)
    found = pattern.fullmatch(path) if pattern else None
    if found is None:
        return None, "", ""
    return found, _decoded(found["name"] or ""), found.groupdict().get("verb") or ""


def _model_request(name: str, found: re.Match[str]) -> ModelRequest:
    version = None
    if found["version"] is not None:
        digits = found["version"]
        version = int(digits) if len(digits) <= len(str(MAX_VERSION)) else MAX_VERSION + 1
        if version > MAX_VERSION:
            raise ServingError(Code.INVALID_ARGUMENT, f"Failed to convert version: {digits} to numeric.")
    return ModelRequest(name, version, _decoded(found["label"]) if found["label"] else None)


def _decoded(text: str) -> str:
    # Bytes that are no text come as lone surrogates, which neither a protocol buffer nor the page of metrics takes.
    return unquote(text).encode(errors="replace").decode()


def _spec(request: ModelRequest, signature: str = "") -> ModelSpec:
    spec = ModelSpec(name=request.name, signature_name=signature)
    if request.version is not None:
        spec.version.value = request.version
    elif request.label is not None:
        spec.version_label = request.label
    return spec


def _check_named(request: ModelRequest) -> None:
    if not request.name:
        raise ServingError(Code.INVALID_ARGUMENT, "Missing model name in request.")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, "The request waited longer than its deadline.")
    return left
