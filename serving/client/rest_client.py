"""The REST client: TensorFlow Serving's JSON over HTTP/1.1, on urllib3's connection pool."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError, SSLError

from serving.client import arrays
from serving.client.base import Call, Client, Model
from serving.client.connection import Connection
from serving.client.results import DTYPES, Array, ClientError, Metadata, Signature, TensorSpec, VersionStatus
from serving.errors import Code
from serving.protocol import AUTHORIZATION_HEADER, B64, BEARER, REQUEST_ID_HEADER

HALVES = {"float16", "bfloat16"}


def predict_body(signature: str, inputs: Mapping[str, Array]) -> bytes:
    """The body of a predict request, by columns."""
    columns = ",".join(f"{json.dumps(name)}:{_column(name, array)}" for name, array in inputs.items())
    return f'{{"signature_name":{json.dumps(signature)},"inputs":{{{columns}}}}}'.encode()


def examples_body(signature: str, examples: list[dict[str, list[Any]]]) -> bytes:
    """The body of a classify or regress request; an empty signature is the default one."""
    body: dict[str, Any] = {"signature_name": signature} if signature else {}
    rows = [{name: [to_json(value) for value in values] for name, values in row.items()} for row in examples]
    return json.dumps(body | {"examples": rows}).encode()


def parse(body: bytes) -> Any:
    """Parses JSON; bare NaN, Infinity and -Infinity are numbers.

    Raises:
        ClientError: INTERNAL, the body is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body)
        except ValueError as error:
            raise ClientError(Code.INTERNAL, f"received an answer that is not JSON: {error}") from error


def outputs(document: Any, signature: Signature) -> dict[str, Array]:
    """The arrays of a response by columns; a single output comes without its name."""
    values = document["outputs"]
    if len(signature.outputs) == 1:
        values = {next(iter(signature.outputs)): values}
    return {name: arrays.to_output(_plain(value), signature.outputs.get(name)) for name, value in values.items()}


def metadata(document: Any) -> Metadata:
    """The signatures in a metadata response."""
    spec = document["model_spec"]
    definitions = document["metadata"]["signature_def"]["signature_def"]
    signatures = {
        name: Signature(
            name, definition["method_name"], _tensors(definition["inputs"]), _tensors(definition["outputs"])
        )
        for name, definition in sorted(definitions.items())
        if not name.startswith("__saved_model")
    }
    return Metadata(spec["name"], int(spec["version"]), signatures)


def statuses(document: Any) -> list[VersionStatus]:
    """The versions in a status response."""
    return [
        VersionStatus(
            int(entry["version"]),
            entry["state"],
            Code[entry["status"]["error_code"]],
            entry["status"]["error_message"],
        )
        for entry in document["model_version_status"]
    ]


def _column(name: str, array: Array) -> str:
    kind = array.dtype.kind
    if kind == "O":
        return json.dumps(to_json(array.tolist()))
    if kind == "c":
        raise ClientError(Code.UNIMPLEMENTED, f"input {name!r} is {array.dtype.name}, for which JSON has no form")
    if array.dtype.name in HALVES:
        array = array.astype(np.float32)
    if not array.ndim or (kind == "f" and not np.isfinite(array).all()):
        # orjson does not take NumPy's scalars, and writes null for NaN.
        return json.dumps(array.tolist())
    return orjson.dumps(np.ascontiguousarray(array), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def to_json(value: Any) -> Any:
    """Converts a value to JSON: bytes become text if they are UTF-8, else base64."""
    if isinstance(value, dict):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [to_json(entry) for entry in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {B64: base64.b64encode(value).decode()}
    return value


def _plain(value: Any) -> Any:
    """The values with base64 decoded to bytes."""
    if isinstance(value, list):
        # Lists of numbers, the most frequent ones, are not walked value by value.
        return [_plain(entry) for entry in value] if value and isinstance(value[0], (list, dict, str)) else value
    return base64.b64decode(value[B64]) if isinstance(value, dict) else value


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    return {name: _tensor(info) for name, info in sorted(infos.items())}


def _tensor(info: Mapping[str, Any]) -> TensorSpec:
    shape = None
    if not info["tensor_shape"]["unknown_rank"]:
        sizes = (int(dimension["size"]) for dimension in info["tensor_shape"]["dim"])
        shape = tuple(None if size < 0 else size for size in sizes)
    return TensorSpec(DTYPES.get(info["dtype"], info["dtype"]), shape)


# Connections kept open; more threads than that open temporary ones.
POOL_SIZE = 16
RETRY_AFTER = "retry-after"
LONGEST_TEXT = 1024
CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ABORTED,
    413: Code.RESOURCE_EXHAUSTED,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    # What proxies answer while there is no server behind them.
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}
RETRYABLE = frozenset((429, 502, 503))


class RestClient(Client):
    """Sends requests to a model server over REST.

    Args:
        url: Such as `http://localhost:8501`; `https://` for TLS. Its path, if any, is put before `/v1/models`.
        **options: The attributes of `Connection`: `token`, `ca`, `certificate`, `key`, `timeout`, `retries`.

    Raises:
        ClientError: INVALID_ARGUMENT, a certificate file cannot be read.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(Connection(**options))
        self._url = url.rstrip("/")
        context = _context(self._connection) if url.startswith("https:") else None
        self._pool = urllib3.PoolManager(maxsize=POOL_SIZE, ssl_context=context)

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()

    def _predict(self, model: Model, signature: Signature, inputs: Mapping[str, Array], call: Call) -> dict[str, Array]:
        body = predict_body(signature.name, inputs)
        return outputs(self._request(call, model, ":predict", body), signature)

    def _classify(
        self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call
    ) -> list[list[tuple[str, float]]]:
        document = self._request(call, model, ":classify", examples_body(signature, examples))
        return [[(label, score) for label, score in row] for row in document["results"]]

    def _regress(self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call) -> Array:
        document = self._request(call, model, ":regress", examples_body(signature, examples))
        return np.array(document["results"], np.float32)

    def _status(self, model: Model, call: Call) -> list[VersionStatus]:
        return statuses(self._request(call, model))

    def _metadata(self, model: Model, call: Call) -> Metadata:
        return metadata(self._request(call, model, "/metadata"))

    def _request(self, call: Call, model: Model, suffix: str = "", body: bytes | None = None) -> Any:
        headers = {REQUEST_ID_HEADER: call.request_id, "content-type": "application/json"}
        if self._connection.token is not None:
            headers[AUTHORIZATION_HEADER] = f"{BEARER}{self._connection.token}"
        with _translated(self._url, call):
            response = self._pool.request(
                "GET" if body is None else "POST",
                f"{self._url}{path(model)}{suffix}",
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(total=call.seconds_left()),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            data = _read_body(response, call)
        if response.status != 200:
            raise _refusal(response, data, call)
        return parse(data)


def path(model: Model) -> str:
    """The path of a model's resources, such as `/v1/models/taxi/versions/3`."""
    version_path = ""
    if model.version is not None:
        version_path = f"/versions/{model.version}"
    elif model.label is not None:
        version_path = f"/labels/{quote(model.label, safe='')}"
    return f"/v1/models/{quote(model.name, safe='')}{version_path}"


def _read_body(response: urllib3.HTTPResponse, call: Call) -> bytes:
    """Reads the whole body; a server that sends a byte now and then does not outlast the deadline."""
    parts = []
    # Returns what has arrived without waiting for more; urllib3 offers that only from version 2 on, which Kubeflow's
    # SDK # excludes.
    while part := response._fp.read1():
        parts.append(part)
        call.seconds_left()
    response.release_conn()
    return b"".join(parts)


@contextmanager
def _translated(url: str, call: Call) -> Iterator[None]:
    """Turns network errors into ClientErrors with a code."""
    try:
        yield
    except NewConnectionError as error:
        raise ClientError(
            Code.UNAVAILABLE,
            f"no server answers at {url}: {_reason(error)}",
            call.request_id,
            unreachable=True,
            retryable=True,
        ) from error
    except (ConnectTimeoutError, ReadTimeoutError, TimeoutError) as error:
        raise ClientError(Code.DEADLINE_EXCEEDED, f"{url} did not answer in time", call.request_id) from error
    except SSLError as error:
        raise ClientError(Code.UNAVAILABLE, f"no TLS with {url}: {error}", call.request_id) from error
    except (HTTPError, HTTPException, OSError) as error:
        raise ClientError(
            Code.UNAVAILABLE, f"the connection to {url} broke: {error}", call.request_id, retryable=True
        ) from error


def _reason(error: NewConnectionError) -> str:
    cause = error.__cause__ or error.__context__
    return (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(error)


def _refusal(response: urllib3.HTTPResponse, data: bytes, call: Call) -> ClientError:
    return ClientError(
        CODES.get(response.status, Code.UNKNOWN),
        _message(response.status, data),
        response.headers.get(REQUEST_ID_HEADER, call.request_id),
        retry_after=_seconds(response.headers.get(RETRY_AFTER)),
        retryable=response.status in RETRYABLE,
    )


def _message(status: int, data: bytes) -> str:
    try:
        return str(parse(data)["error"])
    except (ClientError, KeyError, TypeError):
        # Not the server's own message: a proxy's page, or nothing.
        return f"HTTP status {status}: {data.decode(errors='replace')[:LONGEST_TEXT].strip()}"


def _seconds(retry_after: str | None) -> float | None:
    """The seconds to wait according to `Retry-After`; urllib3 reads both seconds and dates."""
    if retry_after is None:
        return None
    try:
        return float(urllib3.Retry().parse_retry_after(retry_after))
    except HTTPError:
        return None


def _context(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.ca)
        # urllib3 compares the names itself if the context does not; below version 2 it gives the context no host name
        # if # the host is an IP address.
        context.check_hostname = False
        if connection.certificate is not None:
            context.load_cert_chain(connection.certificate, connection.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(file) for file in (connection.ca, connection.certificate, connection.key) if file)
        raise ClientError(Code.INVALID_ARGUMENT, f"received {files}, expected PEM files that fit: {error}") from error
    return context
