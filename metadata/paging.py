"""What a list of ML Metadata holds before any id, newest first.

Its client's `ListOptions` begin at the newest, or take a filter query, which ML Metadata 1.21 no longer knows. The
requests below the client begin anywhere: their page tokens are messages of its own, in which an id can be written.
"""

from __future__ import annotations

import base64
from typing import Any

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from ml_metadata.proto import metadata_store_service_pb2 as service_pb2

MOST_AT_ONCE = 100
"""As many as ML Metadata's own client asks for at once."""


def newest(store: mlmd.MetadataStore, request: Any, limit: int, before: int | None = None) -> list[Any]:
    """The newest artifacts, executions or contexts of a list, newest first.

    Args:
        store: The store.
        request: What to list, such as a `GetArtifactsByTypeRequest`; its options are set here.
        limit: How many at most.
        before: Only those with a lower id.
    """
    method = type(request).__name__.removesuffix("Request")
    listed: list[Any] = []
    while len(listed) < limit:
        wanted = min(MOST_AT_ONCE, limit - len(listed))
        _set_options(request.options, wanted, before)
        response = getattr(service_pb2, f"{method}Response")()
        store._call(method, request, response)
        # The first field of each of these responses has the listed.
        page = getattr(response, response.DESCRIPTOR.fields[0].name)
        listed += page
        if len(page) < wanted:
            break
        before = page[-1].id
    return listed


def _set_options(options: mlmd_pb2.ListOperationOptions, size: int, before: int | None) -> None:
    options.Clear()
    options.max_result_size = size
    options.order_by_field.field = mlmd_pb2.ListOperationOptions.OrderByField.ID
    options.order_by_field.is_asc = False
    if before is not None:
        token = mlmd_pb2.ListOperationNextPageToken(id_offset=before, field_offset=before, set_options=options)
        options.next_page_token = base64.urlsafe_b64encode(token.SerializeToString()).decode()
