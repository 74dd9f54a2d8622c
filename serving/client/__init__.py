"""Clients of a model server, ours or TensorFlow Serving, over REST or gRPC; both have the same interface.

    with serving.client.RestClient("http://localhost:8501") as client:
        client.predict("taxi", {"fare": [12.5], …}, signature="predict").outputs["probability"]

`GrpcClient` loads TensorFlow along with the protocol's messages; `RestClient` does not.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from serving.client.base import Client
from serving.client.connection import Connection, RetryPolicy
from serving.client.rest_client import RestClient
from serving.client.results import (
    Classification,
    ClientError,
    Metadata,
    Prediction,
    Regression,
    Signature,
    TensorSpec,
    VersionStatus,
)
from serving.errors import Code

if TYPE_CHECKING:
    from serving.client.grpc_client import GrpcClient

__all__ = [
    "Classification",
    "Client",
    "ClientError",
    "Code",
    "Connection",
    "GrpcClient",
    "Metadata",
    "Prediction",
    "Regression",
    "RestClient",
    "RetryPolicy",
    "Signature",
    "TensorSpec",
    "VersionStatus",
    "connect",
]

DEFAULT_CONNECTION = Connection()
SCHEMES = ("http", "https", "grpc", "grpcs")


def connect(server: str, connection: Connection = DEFAULT_CONNECTION) -> Client:
    """Creates the client for a server's address; sends nothing yet.

    Args:
        server: `http://host:port`, `https://…`, `grpc://…`, or `grpcs://…` for gRPC with TLS.
        connection: Token, certificates, deadline and retries.

    Raises:
        ClientError: INVALID_ARGUMENT, the address has none of these forms.
    """
    parts = urlsplit(server)
    if parts.scheme not in SCHEMES or not parts.netloc:
        expected = ", ".join(f"{scheme}://host:port" for scheme in SCHEMES)
        raise ClientError(Code.INVALID_ARGUMENT, f"received server {server!r}, expected one of {expected}")
    options = {field.name: getattr(connection, field.name) for field in dataclasses.fields(connection)}
    if parts.scheme.startswith("http"):
        return RestClient(server, **options)
    from serving.client.grpc_client import GrpcClient

    return GrpcClient(parts.netloc, tls=parts.scheme == "grpcs", **options)


def __getattr__(name: str) -> Any:
    """Loads the gRPC client, and TensorFlow with it, on first use."""
    if name == "GrpcClient":
        from serving.client.grpc_client import GrpcClient

        return GrpcClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
