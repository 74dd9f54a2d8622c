"""Asks a model server, this one or TensorFlow Serving, over REST or gRPC; both clients have one interface.

    with serving.client.RestClient("http://localhost:8501") as client:
        client.predict("taxi", {"fare": [12.5], …}, signature="predict").outputs["probability"]

`GrpcClient` loads TensorFlow with the protocol's messages; `RestClient` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from serving.client.answers import (
    Classification,
    ClientError,
    Metadata,
    Prediction,
    Regression,
    Signature,
    TensorSpec,
    VersionStatus,
)
from serving.client.base import Client
from serving.client.connection import Connection, connect
from serving.client.rest_client import RestClient
from serving.client.retries import RetryPolicy
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


def __getattr__(name: str) -> Any:
    """Loads the client of gRPC, and TensorFlow with it, where it is first asked for."""
    if name == "GrpcClient":
        from serving.client.grpc_client import GrpcClient

        return GrpcClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
