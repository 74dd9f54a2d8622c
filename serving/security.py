"""Access control: TLS for both ports, and the bearer token."""

from __future__ import annotations

import hmac
import ssl
from pathlib import Path

import grpc

from serving.errors import Code, ServingError, invalid
from serving.protocol import BEARER
from serving.protos import SSLConfig, read_text_proto
from serving.settings import ServerSettings


def grpc_credentials(path: Path) -> grpc.ServerCredentials:
    """Reads an SSLConfig in text form, which holds the certificates and the key themselves, not their paths.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or lacks a part.
    """
    config = read_text_proto(path, "ssl_config_file", SSLConfig())
    if not (config.server_key and config.server_cert):
        raise invalid(f"received ssl_config_file {path} without server_key or server_cert, expected both")
    if config.client_verify and not config.custom_ca:
        raise invalid(
            f"received ssl_config_file {path} with client_verify and without custom_ca, expected the authority"
        )
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        root_certificates=config.custom_ca.encode() or None,
        require_client_auth=config.client_verify,
    )


def rest_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Makes the REST port's TLS context; None if the settings do not ask for TLS.

    Raises:
        ServingError: INVALID_ARGUMENT, a file is missing or invalid.
    """
    certificate, key = settings.rest_api_ssl_cert_file, settings.rest_api_ssl_key_file
    authority = settings.rest_api_ssl_ca_file
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None:
        raise invalid(
            "received incomplete TLS settings for REST, expected rest_api_ssl_cert_file and rest_api_ssl_key_file"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if authority is not None:
            context.load_verify_locations(authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(path) for path in (certificate, key, authority) if path)
        raise invalid(f"received {files}, expected PEM files that fit together: {error}") from error
    return context


def read_token(path: Path) -> str:
    """Reads the bearer token: the file's text without surrounding white space.

    Raises:
        ServingError: INVALID_ARGUMENT, the file does not exist or is empty.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"received bearer_token_file {path}, expected a text file: {error}") from error
    if not token:
        raise invalid(f"received bearer_token_file {path}, expected a token in it")
    return token


def authorize(header: str | None, token: str | None) -> None:
    """Checks the `Authorization` header of a request.

    Args:
        header: What the client sent, or None.
        token: What it must send as `Bearer …`, or None if access is open.

    Raises:
        ServingError: UNAUTHENTICATED, the header is missing or wrong.
    """
    if token is None:
        return
    if header is None or not header.startswith(BEARER):
        raise ServingError(Code.UNAUTHENTICATED, "received no bearer token, expected `Authorization: Bearer <token>`")
    # Takes the same time wherever they differ.
    if not hmac.compare_digest(header[len(BEARER) :].encode(errors="surrogateescape"), token.encode()):
        raise ServingError(Code.UNAUTHENTICATED, "received a wrong bearer token")
