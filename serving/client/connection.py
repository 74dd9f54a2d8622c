"""Where a server is and how a client proves who it is; the same for REST and gRPC."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from serving.client.answers import ClientError
from serving.client.retries import RetryPolicy
from serving.errors import Code

if TYPE_CHECKING:
    from serving.client.base import Client

SCHEMES = ("http", "https", "grpc", "grpcs")
DEFAULT_RETRIES = RetryPolicy()


@dataclasses.dataclass(frozen=True)
class Connection:
    """What both clients are told besides the address.

    Attributes:
        token: Sent as `Authorization: Bearer …` with every request; None for none.
        ca: The authority that the server's certificate must come from, PEM; None for those that the machine trusts.
        certificate: The client's own certificate, PEM, for servers that ask for one; with `key`.
        key: Its private key, PEM.
        timeout: Seconds for a whole call, retries included, unless the call says otherwise.
        retries: When and how often a request is sent again.
    """

    token: str | None = None
    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None
    timeout: float = 30.0
    retries: RetryPolicy = DEFAULT_RETRIES

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ClientError(Code.INVALID_ARGUMENT, "received one of certificate and key, expected both or none")
        if self.timeout <= 0:
            raise ClientError(Code.INVALID_ARGUMENT, f"received timeout={self.timeout:g}, expected more than 0 seconds")


def connect(server: str, connection: Connection = Connection()) -> Client:
    """Makes the client for a server's address; nothing is sent yet.

    Args:
        server: `http://host:port`, `https://…`, `grpc://…`, or `grpcs://…` for gRPC with TLS.
        connection: Token, certificates, deadline and retries.

    Raises:
        ClientError: INVALID_ARGUMENT, it is none of these.
    """
    parts = urlsplit(server)
    if parts.scheme not in SCHEMES or not parts.netloc:
        expected = ", ".join(f"{scheme}://host:port" for scheme in SCHEMES)
        raise ClientError(Code.INVALID_ARGUMENT, f"received server {server!r}, expected one of {expected}")
    options = {field.name: getattr(connection, field.name) for field in dataclasses.fields(connection)}
    if parts.scheme.startswith("http"):
        from serving.client.rest_client import RestClient

        return RestClient(server, **options)
    from serving.client.grpc_client import GrpcClient

    return GrpcClient(parts.netloc, tls=parts.scheme == "grpcs", **options)
