"""The faults of Kubeflow Pipelines' API in words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kfp_server_api as api
import urllib3

from components.errors import ClusterError, SettingsError

REFUSALS = {
    401: "Set the variable that `kubeflow.token_env` names to a token of yours.",
    403: "Ask for a role in the namespace that may do this; see docs/kubeflow.md.",
}
"""What can be done about an answer's status."""


def token(variable: str) -> str:
    """The token in an environment variable.

    Raises:
        SettingsError: It is not set.
    """
    found = os.environ.get(variable)
    if not found:
        raise SettingsError(
            f"the environment variable {variable} is not set; `kubeflow.token_env` says that it holds the API's token.",
            f"Set it: export {variable}=…",
        )
    return found


@contextmanager
def told(host: str, what: str) -> Iterator[None]:
    """Turns what the client raises into one message.

    Args:
        host: The API's address.
        what: What is being asked of it, such as `start the run taxi-1`.

    Raises:
        ClusterError: The API cannot be reached or refuses.
    """
    try:
        yield
    except api.ApiException as error:
        said = _message(error)
        known = error.status in REFUSALS
        raise ClusterError(
            f"Kubeflow Pipelines at {host} refused to {what}: {error.status} {said}.",
            REFUSALS[error.status] if known else None,
        ) from error
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        raise ClusterError(
            f"Kubeflow Pipelines at {host} cannot be reached: {type(reason).__name__}: {_without_object(reason)}.",
            "Check `kubeflow.host`; on your own machine first:  "
            "kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80",
        ) from error


def _without_object(reason: object) -> str:
    """What urllib3 says, without the address of the connection in memory."""
    return str(reason).partition(">: ")[2] or str(reason)


def _message(error: Any) -> str:
    """The sentence in what the API answered; its answers carry Go's stack besides."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body or ""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    text = str(told.get("message") or told.get("error") or body) if isinstance(told, dict) else body
    return text.splitlines()[0].rstrip(".") if text.strip() else str(error.reason)
