"""An object store's words, as errors that say what can be done about them."""

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
"""What can be done about a store's words, in lower case; the first that fits."""


class ObjectStoreError(StoreError, UnavailableError):
    """The object store cannot be reached, or refuses us; it may come back."""


@contextmanager
def translated(root: ObjectRoot, endpoint: str | None, doing: str) -> Iterator[None]:
    """Tells what the store refused, and what can be done about it.

    Args:
        root: What is reached for.
        endpoint: The server; None for Amazon's or Google's.
        doing: What is done, as in "cannot be {doing}".

    Raises:
        ObjectStoreError: The store refused it or is away.
        OSError: What this machine refused, such as a full disk; and FileNotFoundError.
    """
    try:
        yield
    except OSError as error:
        # Arrow numbers the errors of this machine, and Google's that are like one.
        if error.errno is not None and not GOOGLE.search(str(error)):
            raise
        raise _error(root, endpoint, doing, error) from error


def _error(root: ObjectRoot, endpoint: str | None, doing: str, error: Exception) -> ObjectStoreError:
    text = " ".join(str(error).split())
    found = AWS.search(text) or GOOGLE.search(text)
    said = f"{found['said'] or 'it does not say why'} ({found['code']})" if found else text
    fix = next((fix for pattern, fix in FIXES if re.search(pattern, text, re.IGNORECASE)), "See the server's log.")
    where = f"{root} at {endpoint}" if endpoint else str(root)
    what = f"the object store cannot be {doing}: {where}: {said.rstrip('.')}."
    return ObjectStoreError(what, fix.format(rights=RIGHTS, who=WHO[root.scheme]))
