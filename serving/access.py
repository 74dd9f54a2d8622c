"""Who may ask, and what is written down about each request; the same over REST and gRPC."""

from __future__ import annotations

import hmac
import itertools
import logging
import re
import secrets
from pathlib import Path

from serving.errors import Code, ServingError

REQUEST_ID_HEADER = "x-request-id"
AUTHORIZATION_HEADER = "authorization"
BEARER = "Bearer "
# What clients write goes into the log only so far.
LONGEST_TEXT = 200

_log = logging.getLogger("serving.access")
# An id is new because no other process has the first half of it, and nothing else here the second.
_FIRST_HALF = secrets.token_hex(8)
_numbers = itertools.count()
_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def read_token(path: Path) -> str:
    """Reads the bearer token: the file's text without the white space around it.

    Raises:
        ServingError: INVALID_ARGUMENT, there is no such file or nothing in it.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServingError(
            Code.INVALID_ARGUMENT, f"received bearer_token_file {path}, expected a text file: {error}"
        ) from error
    if not token:
        raise ServingError(Code.INVALID_ARGUMENT, f"received bearer_token_file {path}, expected a token in it")
    return token


def authorize(header: str | None, token: str | None) -> None:
    """Checks the `Authorization` of a request.

    Args:
        header: What the client sent, or None.
        token: What it must send as `Bearer …`, or None where everybody may ask.

    Raises:
        ServingError: UNAUTHENTICATED, it is missing or wrong.
    """
    if token is None:
        return
    if header is None or not header.startswith(BEARER):
        raise ServingError(Code.UNAUTHENTICATED, "received no bearer token, expected `Authorization: Bearer <token>`")
    # Takes the same time whatever differs.
    if not hmac.compare_digest(header[len(BEARER) :].encode(errors="surrogateescape"), token.encode()):
        raise ServingError(Code.UNAUTHENTICATED, "received a wrong bearer token")


def request_id(given: str | None) -> str:
    """The id that the client gave the request, or a new one; a client's is kept where it cannot forge log lines."""
    if given is not None and _GOOD_ID.fullmatch(given):
        return given
    return f"{_FIRST_HALF}{next(_numbers):016x}"


def log_request(
    identity: str, entrypoint: str, api: str, model: str, milliseconds: float, error: ServingError | None
) -> None:
    """Writes a request's line of the access log: a warning for a refused request, an information for an answered one.

    Args:
        identity: The request's id.
        entrypoint: `REST` or `GRPC`.
        api: What was asked for, such as `Predict`.
        model: The model's name as the client wrote it.
        milliseconds: How long it took.
        error: Why it was refused, or None where it was answered.
    """
    level = logging.WARNING if error else logging.INFO
    if _log.isEnabledFor(level):
        end = f"{error.code.name} {error.message[:LONGEST_TEXT]!r}" if error else "OK"
        _log.log(level, "%s %s %s %r %.2f ms %s", identity, entrypoint, api, model[:LONGEST_TEXT], milliseconds, end)


def log_answered(wanted: bool) -> None:
    """Says whether answered requests get a line, too; refused ones always do."""
    _log.setLevel(logging.INFO if wanted else logging.WARNING)
