"""The list of artifacts, an artifact, one of its files, and its lineage as a graph to click through."""

from __future__ import annotations

from dataclasses import asdict, replace

from contracts.near_names import near_names
from metadata import lineage as lineages
from metadata.lineage import Direction
from metadata.queries import INPUTS, PAGE, Queries
from metadata.records import STATE_WORDS, UNFINISHED, MadeArtifact, NodeRun, Place
from metadata.values import artifact_values, fingerprint_of, lineage_values
from ui.dashboard import files, search
from ui.dashboard.files import Listing, Preview
from ui.dashboard.page import (
    Ask,
    BadRequestError,
    NotFoundError,
    Page,
    artifact_link,
    node_link,
    paging,
    run_link,
)
from ui.links import URLS
from ui.parts import Column, Facts, Filter, Heading, Parts, Picker, Section, Table, Text, Verbatim, Ways, pairs
from ui.report.origin import lineage_graph
from ui.texts import count, line, link, local_time, size, state

ARTIFACT = Column("Artifact", lambda entry: artifact_link(entry.artifact))
MADE = Column("Made", lambda entry: local_time(entry.artifact.created), "time")
IN_RUN = Column("In run", lambda entry: run_link(entry.place and entry.place.run))
"""Columns of tables of artifacts."""


def artifacts_page(store: Queries, ask: Ask) -> Page:
    """A page of artifacts, newest first."""
    type_name, before = ask.value("type"), ask.number("before")
    types = store.artifact_types()
    if type_name is not None and type_name not in types:
        near = near_names(type_name, types, most=3, cutoff=0.4) or types
        raise NotFoundError(f"There are no artifacts of type {type_name}.", [(n, URLS.artifacts(type=n)) for n in near])
    shown, older = page_of(store, type_name, before)
    columns = [
        ARTIFACT,
        MADE,
        Column("By", lambda entry: node_link(entry.place)),
        IN_RUN,
        Column("Where", lambda entry: entry.artifact.uri, "path"),
    ]

    def show() -> Parts:
        older_page = URLS.artifacts(type=type_name, before=older) if older else None
        parts = [
            Filter("/artifacts", [Picker("type", "Type", types, type_name)]),
            Table("artifacts", shown, columns) if shown else empty_note(before),
            paging("artifacts", URLS.artifacts(type=type_name), older_page, before),
        ]
        return [Section("list", "Artifacts, newest first", parts, heading=False)]

    return Page("Artifacts", show, [artifact_values(entry) for entry in shown], section="Artifacts")


def page_of(store: Queries, type_name: str | None, before: int | None) -> tuple[list[MadeArtifact], int | None]:
    """A page of artifacts, newest first, and the id before which the next page begins; None if there is none."""
    entries = store.artifacts(type_name, PAGE + 1, before)
    return entries[:PAGE], entries[PAGE - 1].artifact.id if len(entries) > PAGE else None


def empty_note(before: int | None) -> Text:
    """The text in place of an empty table."""
    return Text("There are none." if before is None else "There are none any more.")


MOST_USERS = 25
MOST_FILES_SHOWN = 3
"""If an artifact has more files than this, none of them represents it."""


def artifact_page(store: Queries, ask: Ask) -> Page:
    """The page of an artifact."""
    entry = search.artifact_of(store, ask.match["artifact"])
    artifact, place = entry.artifact, entry.place
    listing = files.listing_of(artifact)
    used = _users(store, artifact.id)
    preview = _only_file(entry, listing)

    def show() -> Parts:
        of_run = line(" of ", run_link(place.run)) if place and place.run else ""
        facts = [
            ("Made", local_time(artifact.created)),
            ("By", line(node_link(place), of_run) if place else None),
            ("State", artifact.state.lower()),
        ]
        lineage = link("Lineage: what it was made from, and what was made from it", URLS.lineage(artifact.id))
        properties = pairs("Properties", "Property", "Value", artifact.properties)
        return [
            Section("what", "What it is", [Facts(facts), Text(artifact.uri, "path"), Text(lineage)], heading=False),
            Section("files", "Files", [*_files(entry, listing), *(preview or [])]),
            Section("users", "Used by", _users_shown(used)),
            Section("properties", "Properties", [properties]) if artifact.properties else None,
        ]

    return Page(
        f"{artifact.type} {artifact.id}",
        show,
        artifact_values(entry)
        | {"files": [asdict(file) for file in listing.files] if listing else None}
        | {"used_by": [{"execution": n.id, "run": p.run, "node": p.node, "as": name} for n, p, name in used]},
        section="Artifacts",
        live=any(node.state in UNFINISHED for node, _place, _name in used),
        trail=[("Artifacts", "/artifacts"), (artifact.type, URLS.artifacts(type=artifact.type))],
    )


def _files(entry: MadeArtifact, listing: Listing | None) -> Parts:
    if listing is None:
        return [Text("Its folder is not there any more.")]
    if not listing.files:
        return [Text("Its folder is empty.", "dim")]
    more = "" if listing.whole else "; there are more"
    pages = {file.path: URLS.file(entry.artifact.id, file.path) for file in listing.files if file.shown}
    columns = [
        Column("File", lambda file: link(file.path, pages.get(file.path, "")), "path"),
        Column("Size", lambda file: "leads out of the folder" if file.outside else size(file.bytes), "number"),
    ]
    return [
        Text(f"{count(len(listing.files), 'file')}, {size(listing.bytes)}{more}", "dim"),
        Table("files", listing.files, columns, head=None),
    ]


def _only_file(entry: MadeArtifact, listing: Listing | None) -> Parts:
    """The first file of an artifact that has few, if it is text."""
    shown = [file for file in listing.files if file.shown] if listing else []
    path = files.file_of(entry.artifact, shown[0].path) if 0 < len(shown) <= MOST_FILES_SHOWN else None
    preview = files.preview(path) if path else None
    return [Heading(shown[0].path), *_preview(preview)] if preview and not preview.binary else []


def _preview(preview: Preview) -> Parts:
    if preview.binary:
        return [Text("This file is not text.", "dim")]
    more = Text("The beginning of the file; there is more.", "dim") if preview.cut else None
    if not preview.rows:
        return [Verbatim(preview.text, "Contents of the file"), more]
    head, *rows = preview.rows

    def column(place: int, title: str) -> Column:
        return Column(title, lambda row: row[place] if place < len(row) else "")

    columns = [column(place, title) for place, title in enumerate(head)]
    return [Table("Beginning of the file", rows, columns, head=None), more]


def _users(store: Queries, artifact: int) -> list[tuple[NodeRun, Place, str]]:
    """The node runs that used it, newest first, with the name of their input."""
    consumers = store.consumers([artifact])
    events = store.events_of(consumers)
    runs = store.node_runs_by_id(consumers)
    return [
        (*runs[execution], event.path.steps[0].key)
        for execution in sorted(consumers, reverse=True)
        for event in events[execution]
        if event.artifact_id == artifact and event.type in INPUTS and execution in runs
    ]


def _users_shown(used: list[tuple[NodeRun, Place, str]]) -> Parts:
    if not used:
        return [Text("Nobody yet.", "dim")]
    columns = [
        Column("Node", lambda user: node_link(user[1])),
        Column("As", lambda user: user[2]),
        Column("In run", lambda user: run_link(user[1].run)),
        Column("State", lambda user: state(STATE_WORDS[user[0].state])),
    ]
    more = Text(f"And {count(len(used) - MOST_USERS, 'other')}.", "dim") if len(used) > MOST_USERS else None
    return [Table("who used it", used[:MOST_USERS], columns), more]


def file_page(store: Queries, ask: Ask) -> Page:
    """The page of an artifact's file, with its contents if it is text."""
    entry = search.artifact_of(store, ask.match["artifact"])
    path = ask.match["path"]
    name = f"{entry.artifact.type} {entry.artifact.id}"
    file = files.file_of(entry.artifact, path)
    if file is None:
        near = [(name, URLS.artifact(entry.artifact.id))]
        raise NotFoundError(f"The artifact {entry.artifact.id} has no file {path}.", near)
    preview, length = files.preview(file), file.stat().st_size
    return Page(
        f"{path} of {name}",
        lambda: [Section("file", "The file", [Text(size(length), "dim"), *_preview(preview)], heading=False)],
        {"artifact": entry.artifact.id, "path": path, "bytes": length} | asdict(preview),
        section="Artifacts",
        trail=_trail(entry),
        heading=path,
    )


def _trail(entry: MadeArtifact) -> list[tuple[str, str]]:
    return [
        ("Artifacts", "/artifacts"),
        (f"{entry.artifact.type} {entry.artifact.id}", URLS.artifact(entry.artifact.id)),
    ]


MOST_DRAWN = 60
"""Artifacts in each direction; a graph of more is unreadable."""

WAYS: dict[str, tuple[str, tuple[Direction, ...]]] = {
    "both": ("Both ways", ("up", "down")),
    "up": ("What it was made from", ("up",)),
    "down": ("What was made from it", ("down",)),
}


def lineage_page(store: Queries, ask: Ask) -> Page:
    """The page of a lineage."""
    entry = search.artifact_of(store, ask.match["artifact"])
    number, way = entry.artifact.id, ask.value("direction") or "both"
    if way not in WAYS:
        raise BadRequestError(f"direction is one of {', '.join(WAYS)}; received {way!r}.")
    traces = [lineages.trace(store, number, direction, MOST_DRAWN) for direction in WAYS[way][1]]
    traced = [lineage for lineage in traces if lineage is not None]
    made_with = [
        fingerprint_of(step.node_run) for each in traced if each.direction == "up" for step in each.steps.values()
    ]
    raw_files = {path: digest for each in made_with if each for path, digest in each.files.items()}

    def show() -> Parts:
        artifacts = {id: artifact for each in traced for id, artifact in each.artifacts.items()}
        steps = {id: step for each in traced for id, step in each.steps.items()}
        directions = [
            (word, f"{URLS.lineage(number)}?direction={name}", "current" if name == way else "")
            for name, (word, _directions) in WAYS.items()
        ]
        cut = (
            f"There are more than {MOST_DRAWN} artifacts; the graph is cut off there. "
            "Click an artifact to continue from it."
        )
        drawn = lineage_graph(
            "Lineage",
            dict(sorted(artifacts.items())),
            [step for _id, step in sorted(steps.items())],
            number,
            URLS.lineage,
            URLS,
            states=STATE_WORDS,
        )
        whole = all(each.whole for each in traced)
        # Sorted, because the layout depends on the order.
        drawn = replace(drawn, edges=sorted(drawn.edges))
        parts = [Ways("Direction", directions, "ways"), None if whole else Text(cut, "dim"), drawn]
        read = Section("raw", "Files from outside that it depends on", [pairs("Files", "File", "Digest", raw_files)])
        return [Section("graph", "The graph", parts, heading=False), read if raw_files else None]

    return Page(
        f"Lineage of {entry.artifact.type} {number}",
        show,
        {each.direction: lineage_values(each) for each in traced},
        section="Artifacts",
        live=any(step.node_run.state in UNFINISHED for each in traced for step in each.steps.values()),
        trail=_trail(entry),
    )
