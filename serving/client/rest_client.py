"""The client of REST: JSON over HTTP/1.1, on urllib3's pool of connections."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

import numpy as np
import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError, SSLError

from serving.client import rest_json
from serving.client.answers import Array, ClientError, Metadata, Signature, VersionStatus
from serving.client.base import AUTHORIZATION, REQUEST_ID, Call, Client, Model
from serving.client.connection import Connection
from serving.errors import Code

# Connections that are kept; more threads than that make further ones for a moment.
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
    # What proxies say while no server is behind them.
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}
RETRYABLE = frozenset((429, 502, 503))


class RestClient(Client):
    """Asks a model server over REST.

    Args:
        url: Such as `http://localhost:8501`; `https://` for TLS. Whatever path it has comes before `/v1/models`.
        **options: What `Connection` has: `token`, `ca`, `certificate`, `key`, `timeout`, `retries`.

    Raises:
        ClientError: INVALID_ARGUMENT, a file of certificates cannot be read.
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
        body = rest_json.predict_body(signature.name, inputs)
        return rest_json.outputs(self._ask(call, model, ":predict", body), signature)

    def _classify(
        self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call
    ) -> list[list[tuple[str, float]]]:
        answer = self._ask(call, model, ":classify", rest_json.examples_body(signature, examples))
        return [[(label, score) for label, score in row] for row in answer["results"]]

    def _regress(self, model: Model, signature: str, examples: list[dict[str, list[Any]]], call: Call) -> Array:
        answer = self._ask(call, model, ":regress", rest_json.examples_body(signature, examples))
        return np.array(answer["results"], np.float32)

    def _status(self, model: Model, call: Call) -> list[VersionStatus]:
        return rest_json.statuses(self._ask(call, model))

    def _metadata(self, model: Model, call: Call) -> Metadata:
        return rest_json.metadata(self._ask(call, model, "/metadata"))

    def _ask(self, call: Call, model: Model, what: str = "", body: bytes | None = None) -> Any:
        headers = {REQUEST_ID: call.request_id, "content-type": "application/json"}
        if self._connection.token is not None:
            headers[AUTHORIZATION] = f"Bearer {self._connection.token}"
        with _translated(self._url, call):
            response = self._pool.request(
                "GET" if body is None else "POST",
                f"{self._url}{path(model)}{what}",
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(total=call.seconds_left()),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            data = _read(response, call)
        if response.status != 200:
            raise _refusal(response, data, call)
        return rest_json.parse(data)


def path(model: Model) -> str:
    """The path of a model's resources, such as `/v1/models/taxi/versions/3`."""
    which = ""
    if model.version is not None:
        which = f"/versions/{model.version}"
    elif model.label is not None:
        which = f"/labels/{quote(model.label, safe='')}"
    return f"/v1/models/{quote(model.name, safe='')}{which}"


def _read(response: urllib3.HTTPResponse, call: Call) -> bytes:
    """The whole body. A server that sends a byte now and then does not outlast the deadline."""
    parts = []
    # What has come so far, and no waiting for more; urllib3 itself can do that from its version 2 on, which Kubeflow's
    # SDK excludes.
    while part := response._fp.read1():
        parts.append(part)
        call.seconds_left()
    response.release_conn()
    return b"".join(parts)


@contextmanager
def _translated(url: str, call: Call) -> Iterator[None]:
    """Gives the errors of the network their codes."""
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
        response.headers.get(REQUEST_ID, call.request_id),
        retry_after=_seconds(response.headers.get(RETRY_AFTER)),
        retryable=response.status in RETRYABLE,
    )


def _message(status: int, data: bytes) -> str:
    try:
        return str(rest_json.parse(data)["error"])
    except (ClientError, KeyError, TypeError):
        # Not the server's own words: a proxy's page, or nothing.
        return f"HTTP status {status}: {data.decode(errors='replace')[:LONGEST_TEXT].strip()}"


def _seconds(retry_after: str | None) -> float | None:
    """What `Retry-After` asks to wait for; urllib3 knows seconds and dates."""
    if retry_after is None:
        return None
    try:
        return float(urllib3.Retry().parse_retry_after(retry_after))
    except HTTPError:
        return None


def _context(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.ca)
        # urllib3 compares the names itself where the context does not; below version 2 it names no host to the context
        # where that is an IP address.
        context.check_hostname = False
        if connection.certificate is not None:
            context.load_cert_chain(connection.certificate, connection.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(file) for file in (connection.ca, connection.certificate, connection.key) if file)
        raise ClientError(Code.INVALID_ARGUMENT, f"received {files}, expected PEM files that fit: {error}") from error
    return context
