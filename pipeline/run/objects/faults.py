"""Translates an object store's errors into ours, which say what to do about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from contracts.errors import StoreError
from metadata.files import UnavailableError
from pipeline.plan.object_store_settings import ObjectRoot

AWS = re.compile(r"AWS Error (?P<code>.+?) during (?P<operation>\w+) operation: (?P<said>.*)", re.DOTALL)
GOOGLE = re.compile(r"google::cloud::Status\((?P<code>\w+): (?P<said>.*)\)", re.DOTALL)

RIGHTS = "to list the bucket, and to read, write and delete objects below the prefix"
WHO = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the pod's role",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or the pod's service account",
}
FIXES = (
    (
        r"no_such_bucket|bucket does not exist|not_found",
        "Make the bucket, or check its name in pipeline_root; it is not made for you.",
    ),
    (
        r"invalid_access_key|signature|invalid_client_token|invalidaccesskey|unrecognized_client|expired|oauth2|"
        r"unauthenticated|credentials",
        "Check the credentials: {who}.",
    ),
    (
        r"access_denied|permission_denied|forbidden|status 403",
        "Allow these credentials {rights}. Without any, requests are anonymous: {who}.",
    ),
    (
        r"resolve host",
        "Check object_store.endpoint: no such name is known here.",
    ),
    (
        r"network_connection|connect|unavailable|timeout|deadline|service_unavailable|slow_down|internal",
        "Start the server, or check object_store.endpoint, the network and the firewall; it may come back.",
    ),
    (r"status 301|permanent|region|authorization", "Set object_store.region to the bucket's region."),
)
"""What to do about a store's error message, by patterns in lower case; the first that matches counts."""


class ObjectStoreError(StoreError, UnavailableError):
    """The object store cannot be reached, or refuses us; it may come back."""


@contextmanager
def translated(root: ObjectRoot, endpoint: str | None, doing: str) -> Iterator[None]:
    """Translates the store's errors within the block.

    Args:
        root: The root being accessed.
        endpoint: The server; None for Amazon's or Google's.
        doing: What is being done, as in "cannot be {doing}".

    Raises:
        ObjectStoreError: The store refused it or cannot be reached.
        OSError: An error of this machine, such as a full disk; also FileNotFoundError.
    """
    try:
        yield
    except OSError as error:
        # Arrow sets errno on errors of this machine, and on errors from Google that resemble one.
        if error.errno is not None and not GOOGLE.search(str(error)):
            raise
        raise _error(root, endpoint, doing, error) from error


def _error(root: ObjectRoot, endpoint: str | None, doing: str, error: Exception) -> ObjectStoreError:
    text = " ".join(str(error).split())
    match = AWS.search(text) or GOOGLE.search(text)
    message = f"{match['said'] or 'it does not say why'} ({match['code']})" if match else text
    fix = next((fix for pattern, fix in FIXES if re.search(pattern, text, re.IGNORECASE)), "See the server's log.")
    where = f"{root} at {endpoint}" if endpoint else str(root)
    problem = f"the object store cannot be {doing}: {where}: {message.rstrip('.')}."
    return ObjectStoreError(problem, fix.format(rights=RIGHTS, who=WHO[root.scheme]))
