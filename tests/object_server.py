"""A server on loopback that speaks S3, with buckets that live as long as it does."""

from __future__ import annotations

import logging
import threading
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyarrow import fs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug import serving

REGION = "eu-west-1"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "secret",  # pragma: allowlist secret
    # No other credentials: no profile of whoever runs the tests, no Amazon machine's.
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_CONFIG_FILE": "/dev/null",
}
"""Environment variables for its clients; it accepts any key until `demand_known_keys`."""

REFUSAL = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'

Wsgi = Callable[[Mapping[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Quiet(serving.WSGIRequestHandler):
    def log(self, *_args: object) -> None:
        """Says nothing."""


class ObjectServer:
    """The object store.

    Attributes:
        endpoint: Its URL.
        requests: The requests received, as `GET /bucket/key`, without queries.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.requests: list[str] = []
        self._refusals: list[tuple[str, str, str]] = []
        self._moto: Wsgi = DomainDispatcherApplication(create_backend_app)
        self._server = serving.make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        # The first request reads hundreds of files; it is sent here, where nothing can time out meanwhile.
        self._send("GET", "", None)
        self._admin = fs.S3FileSystem(
            access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            secret_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            region=REGION,
            allow_bucket_creation=True,
        )

    def stop(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def make_bucket(self, name: str) -> None:
        """Makes a bucket."""
        self._admin.create_dir(name)

    def objects(self, place: str) -> dict[str, bytes]:
        """The objects below `bucket/prefix`, by the remainder of their names."""
        selector = fs.FileSelector(place, recursive=True, allow_not_found=True)
        paths = [info.path for info in self._admin.get_file_info(selector) if info.is_file]
        return {path.removeprefix(f"{place}/"): self._admin.open_input_file(path).readall() for path in paths}

    def write(self, place: str, content: bytes) -> None:
        """Writes an object."""
        with self._admin.open_output_stream(place) as stream:
            stream.write(content)

    def write_as_named(self, place: str, content: bytes) -> None:
        """Writes an object whose name Arrow would refuse to write."""
        self._send("PUT", place, content)

    def remove(self, place: str) -> None:
        """Removes all objects below `bucket/prefix`."""
        self._admin.delete_dir(place)

    def remove_object(self, place: str) -> None:
        """Removes the object `bucket/key`."""
        self._admin.delete_file(place)

    def refuse(self, status: str, code: str, message: str, times: int = 1) -> None:
        """Refuses the next requests with an error, such as `503 Slow Down` and `SlowDown`."""
        self._refusals = [(status, code, message)] * times

    def demand_known_keys(self, demanded: bool = True) -> None:
        """Refuses keys that belong to no user, which is every key."""
        allowed = b"0" if demanded else b"inf"
        self._send("POST", "moto-api/reset-auth", allowed)

    def _answer(self, request: Mapping[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append(f"{request['REQUEST_METHOD']} {request['PATH_INFO']}")
        if self._refusals:
            status, code, refusal = self._refusals.pop()
            begin(status, [("Content-Type", "application/xml"), ("Connection", "close")])
            return [] if request["REQUEST_METHOD"] == "HEAD" else [REFUSAL.format(code=code, message=refusal).encode()]
        return self._moto(request, begin)

    def _send(self, method: str, path: str, content: bytes | None) -> None:
        url, headers = f"{self.endpoint}/{path}", {"Content-Type": "text/plain"}
        request = urllib.request.Request(url, data=content, headers=headers, method=method)  # noqa: S310 - ours
        urllib.request.urlopen(request).close()  # noqa: S310
