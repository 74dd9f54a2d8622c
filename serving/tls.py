"""TLS for both ports, with the clients' certificates checked where that is asked for."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, NoReturn

import grpc
from google.protobuf import text_format

from serving.errors import Code, ServingError
from serving.protos import SSLConfig
from serving.settings import ServerSettings


def grpc_credentials(path: Path) -> grpc.ServerCredentials:
    """Reads an SSLConfig in text form, which holds certificates and key themselves, not their paths.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or lacks a part.
    """
    config = read_text_proto(path, "ssl_config_file", SSLConfig())
    if not (config.server_key and config.server_cert):
        _refuse(f"received ssl_config_file {path} without server_key or server_cert, expected both")
    if config.client_verify and not config.custom_ca:
        _refuse(f"received ssl_config_file {path} with client_verify and without custom_ca, expected the authority")
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        root_certificates=config.custom_ca.encode() or None,
        require_client_auth=config.client_verify,
    )


def rest_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Makes what the REST port needs for TLS, or None where it is not asked for.

    Raises:
        ServingError: INVALID_ARGUMENT, a file is missing or not what it should be.
    """
    certificate, key = settings.rest_api_ssl_cert_file, settings.rest_api_ssl_key_file
    authority = settings.rest_api_ssl_ca_file
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None:
        _refuse("received a part of REST's TLS, expected rest_api_ssl_cert_file and rest_api_ssl_key_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if authority is not None:
            context.load_verify_locations(authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(path) for path in (certificate, key, authority) if path)
        _refuse(f"received {files}, expected PEM files that fit together: {error}", error)
    return context


def read_text_proto(path: Path, flag: str, message: Any) -> Any:
    """Reads a protocol buffer in text form into `message` and returns it.

    Args:
        path: The file.
        flag: The flag that named it, for the error.
        message: An empty message.

    Raises:
        ServingError: INVALID_ARGUMENT, the file cannot be read or does not fit.
    """
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), message)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        _refuse(f"received {flag} {path}, expected a {message.DESCRIPTOR.name} in text form: {error}", error)


def _refuse(message: str, cause: Exception | None = None) -> NoReturn:
    raise ServingError(Code.INVALID_ARGUMENT, message) from cause
