"""The REST API: takes a request's method, path and body, returns status and body.

Routes, responses and messages are those of TensorFlow Serving 2.16.1 (model_servers/http_rest_api_handler.cc,
http_rest_api_util.cc). Nothing here knows about sockets or event loops.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_pb2 import ModelSpec

from contracts.protobuf import to_json
from serving.dataplane import DataPlane
from serving.errors import Code, ServingError, invalid
from serving.messages import Array
from serving.models.servable import Servable
from serving.models.signatures import NotQuickError
from serving.models.versions import ModelRequest
from serving.protocol import DEFAULT_SIGNATURE
from serving.rest import json_output, json_requests

WHICH = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
PREDICTION = re.compile(rf"/v1/models/(?P<name>[^/:]+){WHICH}:(?P<verb>classify|regress|predict)", re.IGNORECASE)
STATUS = re.compile(rf"/v1/models(?:/(?P<name>[^/:]+))?{WHICH}(?:/(?P<metadata>metadata))?", re.IGNORECASE)
PREDICT = "predict"
JSON = "application/json"
MAX_VERSION = 2**63 - 1
REMEMBERED_ROUTES = 256
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Response:
    """A response before it is sent.

    Attributes:
        code: The status.
        body: What the client reads.
        model: The model's name; empty if the path has none.
        api: `predict`, `classify` or `regress`; empty for others.
        message: Why the request was refused; empty if it was answered.
        quick: Whether a request of this size could be answered on the event loop.
    """

    code: Code
    body: bytes
    model: str = ""
    api: str = ""
    message: str = ""
    quick: bool = False

    @property
    def error(self) -> ServingError | None:
        """Why the request was refused, or None."""
        return None if self.code is Code.OK else ServingError(self.code, self.message)


def refusal(error: ServingError, model: str = "", api: str = "") -> Response:
    """The response that reports an error."""
    return Response(error.code, json_output.error(error.message), model, api, error.message)


class RestApi:
    """Answers REST requests below `/v1/`; safe to call from any number of threads.

    Args:
        plane: Computes the answers.
    """

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._verbs: dict[str, Callable[[bytes, ModelRequest, float], bytes]] = {
            "classify": self._classify,
            "regress": self._regress,
        }

    def answer(self, method: str, path: str, body: bytes, deadline: float, on_loop: bool = False) -> Response:
        """Answers one request.

        Args:
            method: `GET`, `POST`, …
            path: The path as received, without the query.
            body: The decompressed body.
            deadline: When the client gives up, on `time.monotonic`'s clock.
            on_loop: Whether this runs on an event loop, where other requests wait meanwhile.

        Raises:
            NotQuickError: `on_loop` is set, and the answer would take too long for that. It raises nothing else.
        """
        matched, name, verb = _route(method, path)
        try:
            if matched is None or (verb and verb != PREDICT and verb not in self._verbs):
                raise invalid(f"Malformed request: {method} {path}")
            request = _model_request(name, matched)
            if verb == PREDICT:
                text, quick = self._predict(body, request, deadline, on_loop)
                return Response(Code.OK, text, name, verb, quick=quick)
            if on_loop:
                raise NotQuickError
            if verb:
                text = self._verbs[verb](body, request, deadline)
            elif matched["metadata"] == "metadata":
                text = self._metadata(request)
            else:
                text = self._status(request)
            return Response(Code.OK, text, name, verb)
        except ServingError as error:
            return refusal(error, name, verb)
        except NotQuickError:
            raise
        except Exception:
            # Whatever goes wrong, the client gets a status, and the log has the details.
            log.exception("%s %s failed.", method, path)
            return refusal(ServingError(Code.INTERNAL, "The server failed; its log says why."), name, verb)

    def _predict(self, body: bytes, model: ModelRequest, deadline: float, on_loop: bool) -> tuple[bytes, bool]:
        document = json_requests.parse(body)
        name = json_requests.signature_name(document) or DEFAULT_SIGNATURE

        def read_inputs(servable: Servable) -> Mapping[str, Array]:
            signature = servable.signatures.get(name)
            if signature is None:
                raise invalid(f'Serving signature name: "{name}" not found in signature def')
            return json_requests.predict_inputs(document, signature.inputs)[0]

        outputs, _, quick = self._plane.predict(model, name, read_inputs, (), deadline, on_loop)
        write = json_output.predictions if "instances" in document else json_output.columns
        return write(outputs), quick

    def _classify(self, body: bytes, model: ModelRequest, deadline: float) -> bytes:
        signature, examples = _examples_of(body)
        return json_requests.classification_json(self._plane.classify(model, signature, examples, deadline)[0])

    def _regress(self, body: bytes, model: ModelRequest, deadline: float) -> bytes:
        signature, examples = _examples_of(body)
        return json_requests.regression_json(self._plane.regress(model, signature, examples, deadline)[0])

    def _status(self, model: ModelRequest) -> bytes:
        _check_named(model)
        return f"{to_json(self._plane.status(model))}\n".encode()

    def _metadata(self, model: ModelRequest) -> bytes:
        _check_named(model)
        signatures, version = self._plane.metadata(model)
        spec = ModelSpec(name=model.name, version={"value": version})
        metadata = f'{{"signature_def": {to_json(signatures)}\n}}'
        return f'{{\n"model_spec":{to_json(spec)}\n,\n"metadata": {metadata}\n}}\n'.encode()


def _examples_of(body: bytes) -> tuple[str, Input]:
    """The signature and examples of a classify or regress request."""
    document = json_requests.parse(body)
    name = json_requests.signature_name(document) or DEFAULT_SIGNATURE
    return name, json_requests.to_input(document)


@functools.lru_cache(maxsize=REMEMBERED_ROUTES)
def _route(method: str, path: str) -> tuple[re.Match[str] | None, str, str]:
    """The path's parts, or None if it is not part of the API; the model's name and the verb, each empty if missing."""
    pattern = {"POST": PREDICTION, "GET": STATUS}.get(method)
    matched = pattern.fullmatch(path) if pattern else None
    if matched is None:
        return None, "", ""
    return matched, _decoded(matched["name"] or ""), matched.groupdict().get("verb") or ""


def _model_request(name: str, matched: re.Match[str]) -> ModelRequest:
    version = None
    if matched["version"] is not None:
        digits = matched["version"]
        version = int(digits) if len(digits) <= len(str(MAX_VERSION)) else MAX_VERSION + 1
        if version > MAX_VERSION:
            raise invalid(f"Failed to convert version: {digits} to numeric.")
    return ModelRequest(name, version, _decoded(matched["label"]) if matched["label"] else None)


def _decoded(text: str) -> str:
    # Bytes that are not text come as lone surrogates, which neither a protocol buffer nor the metrics page can hold.
    return unquote(text).encode(errors="replace").decode()


def _check_named(request: ModelRequest) -> None:
    if not request.name:
        raise invalid("Missing model name in request.")
