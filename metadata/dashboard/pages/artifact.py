"""An artifact: its properties and files, who made it and who used it; and a file of it."""

from __future__ import annotations

from dataclasses import asdict

from metadata.dashboard import contents, finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.queries import INPUTS, Queries
from metadata.records import STATE_WORDS, UNFINISHED, NodeRun, Place
from metadata.values import artifact_values

MOST_USERS = 25


def page(store: Queries, ask: Ask) -> Page:
    """The page of an artifact."""
    made = finding.artifact_of(store, ask.match["artifact"])
    files = contents.listing_of(made.artifact)
    used = _users(store, made.artifact.id)
    first = next((file for file in files.files if file.shown), None) if files else None
    shown = contents.file_of(made.artifact, first.path) if first and _few(files) else None
    return Page(
        "artifact.html",
        f"{made.artifact.type} {made.artifact.id}",
        lambda: {
            "made": made,
            "files": files,
            "used": used[:MOST_USERS],
            "more_users": max(len(used) - MOST_USERS, 0),
            "file": first,
            "preview": contents.preview(shown) if shown else None,
            "states": STATE_WORDS,
        },
        artifact_values(made)
        | {"files": [asdict(file) for file in files.files] if files else None}
        | {"used_by": [{"execution": n.id, "run": p.run, "node": p.node, "as": name} for n, p, name in used]},
        section="Artifacts",
        live=any(node.state in UNFINISHED for node, _place, _name in used),
    )


def _few(files: contents.Listing | None) -> bool:
    """Whether one file is what the artifact is about, and not one among many."""
    return files is not None and sum(file.shown for file in files.files) <= MOST_SHOWN


MOST_SHOWN = 3


def _users(store: Queries, artifact: int) -> list[tuple[NodeRun, Place, str]]:
    """The node runs that took it, newest first, with the name of their input."""
    takers = store.takers([artifact])
    events = store.events_of(takers)
    runs = store.node_runs_by_id(takers)
    return [
        (*runs[execution], event.path.steps[0].key)
        for execution in sorted(takers, reverse=True)
        for event in events[execution]
        if event.artifact_id == artifact and event.type in INPUTS and execution in runs
    ]


def file_page(store: Queries, ask: Ask) -> Page:
    """A file of an artifact, as far as it is text."""
    made = finding.artifact_of(store, ask.match["artifact"])
    path = ask.match["path"]
    found = contents.file_of(made.artifact, path)
    if found is None:
        near = [(f"{made.artifact.type} {made.artifact.id}", URLS.artifact(made.artifact.id))]
        raise NotFoundError(f"The artifact {made.artifact.id} has no file {path}.", near)
    preview = contents.preview(found)
    return Page(
        "file.html",
        f"{path} of {made.artifact.type} {made.artifact.id}",
        lambda: {"made": made, "path": path, "bytes": found.stat().st_size, "preview": preview},
        {"artifact": made.artifact.id, "path": path, "bytes": found.stat().st_size} | asdict(preview),
        section="Artifacts",
    )
