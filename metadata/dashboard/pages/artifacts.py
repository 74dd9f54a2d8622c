"""The list of artifacts."""

from __future__ import annotations

import difflib

from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.queries import PAGE, Queries
from metadata.values import artifact_values


def page(store: Queries, ask: Ask) -> Page:
    """A page of artifacts, newest first."""
    type_name, before = ask.one("type"), ask.number("before")
    types = store.artifact_types()
    if type_name is not None and type_name not in types:
        near = difflib.get_close_matches(type_name, types, n=3, cutoff=0.4) or types
        raise NotFoundError(f"There are no artifacts of type {type_name}.", [(n, URLS.artifacts(type=n)) for n in near])
    found = store.artifacts(type_name, PAGE + 1, before)
    shown = found[:PAGE]
    older = shown[-1].artifact.id if len(found) > PAGE else None
    return Page(
        "artifacts.html",
        "Artifacts",
        lambda: {
            "shown": shown,
            "types": types,
            "type_name": type_name,
            "before": before,
            "older": older and URLS.artifacts(type=type_name, before=older),
        },
        [artifact_values(made) for made in shown],
        section="Artifacts",
    )
