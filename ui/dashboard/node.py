"""A node of a run: its inputs, its outputs, what its result depends on, why it ran, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contracts.fingerprints import PROPERTY, Fingerprint
from metadata.queries import Queries
from metadata.records import STATE_WORDS, UNFINISHED, ArtifactRecord, NodeRun, RunRecord
from metadata.values import fingerprint_of, node_values
from ui.dashboard import files, runs, search
from ui.dashboard.page import Ask, NotFoundError, Page, artifact_link, run_link
from ui.links import URLS
from ui.parts import Column, Details, Facts, Heading, Parts, Section, Table, Text, Verbatim, Ways, pairs
from ui.texts import count, line, link, local_time, seconds, state


def node_page(store: Queries, ask: Ask) -> Page:
    """The page of a node."""
    run = search.run_of(store, ask.match["run"])
    node = search.node_of(run, ask.match["node"])
    made_with = fingerprint_of(node)
    inputs, outputs = store.inputs(node.id), store.outputs(node.id)
    path = _log_path(ask, run, node)
    note = ask.site.note(ask.site.log_root / run.id, node.node) if node.state == "RUNNING" else ""
    why = ask.site.why(store, run.pipeline, node.node, node.id)
    origin = _origin(store, node, outputs)
    properties = {name: value for name, value in node.properties.items() if name != PROPERTY}

    def show() -> Parts:
        summary: Parts = [
            Text(line(state(STATE_WORDS[node.state]), " ", why), "verdict"),
            _facts(run, node, note, origin),
            _beside(run, node),
        ]
        several = count(len(properties), "property", "properties")
        listed = Details(several, [pairs("Properties", "Property", "Value", properties)])
        return [
            Section("what", "What it did", summary, heading=False),
            Section("inputs", "Inputs", [_artifacts("inputs", inputs)]),
            Section("outputs", "Outputs", [_artifacts("outputs", outputs)]),
            Section("log", "Log", _log(path, run, node)),
            Section("made-with", "What its result depends on", _made_with(made_with)) if made_with else None,
            Section("properties", "Properties of the execution", [listed]) if properties else None,
        ]

    return Page(
        f"{node.node} of {run.id}",
        show,
        node_values(node)
        | {"run": run.id, "why": why, "origin": origin, "inputs": _ids(inputs), "outputs": _ids(outputs)}
        | {"log_bytes": path.stat().st_size if path.is_file() else None, "note": note}
        | {"fingerprint": asdict(made_with) if made_with else None, "properties": properties},
        section="Runs",
        live=node.state in UNFINISHED,
        trail=[("Runs", "/"), (run.id, URLS.run(run.id))],
        heading=node.node,
    )


def _facts(run: RunRecord, node: NodeRun, note: str, origin: str | None) -> Facts:
    word = STATE_WORDS[node.state]
    going = line(runs.since(node.started), " ", runs.note(node.node, note))
    return Facts(
        [
            ("Run", run_link(run.id)),
            ("Started", local_time(node.started)),
            ("For", going if word == "running" else None),
            ("Took", None if word in {"running", "cached"} else seconds(node.seconds)),
            ("Taken from", link(origin, URLS.node(origin, node.node)) if origin else None),
            ("Execution", node.id),
        ]
    )


def _beside(run: RunRecord, node: NodeRun) -> Ways:
    names = [each.node for each in run.nodes]
    place = names.index(node.node)
    beside = [("Before it", "prev", names[place - 1 : place]), ("After it", "next", names[place + 1 : place + 2])]
    links = [
        (f"{word}: {name}", URLS.node(run.id, name), way) for word, way, neighbours in beside for name in neighbours
    ]
    return Ways("Other nodes of the run", links)


def _artifacts(label: str, named: Mapping[str, list[ArtifactRecord]]) -> Table | Text:
    rows = [(name, artifact) for name, artifacts in named.items() for artifact in artifacts]
    columns = [
        Column("Name", lambda row: row[0]),
        Column("Artifact", lambda row: artifact_link(row[1])),
        Column("Where", lambda row: row[1].uri, "path"),
    ]
    return Table(label, rows, columns) if rows else Text("None.", "dim")


def _log(path: Path, run: RunRecord, node: NodeRun) -> Parts:
    if not path.is_file():
        return [Text("It has left no log.", "dim")]
    text, cut = files.tail(path)
    whole = Text(link("The whole log as text", URLS.log(run.id, node.node)))
    if not text:
        return [Text("It logged nothing.", "dim"), whole]
    return [Text("Its end.", "dim") if cut else None, Verbatim(text, "Text of the log"), whole]


def _made_with(made_with: Fingerprint) -> Parts:
    tables = [
        ("Settings", "Setting", "Value", made_with.settings),
        ("Files", "File", "Digest", made_with.files),
        ("Packages", "Package", "Version", made_with.packages),
    ]
    code = pairs("Source files", "File", "Digest", made_with.code)
    return [
        *(part for each in tables if each[3] for part in (Heading(each[0]), pairs(*each))),
        Details(f"Source files ({len(made_with.code)})", [code]) if made_with.code else None,
    ]


def _origin(store: Queries, node: NodeRun, outputs: dict[str, list[ArtifactRecord]]) -> str | None:
    """The run in which a cached node actually ran."""
    first = next((artifact for artifacts in outputs.values() for artifact in artifacts), None)
    if node.state != "CACHED" or first is None:
        return None
    producer = store.producer(first.id)
    return None if producer is None else store.run_of(producer)


def _ids(named: dict[str, list[ArtifactRecord]]) -> dict[str, Any]:
    return {name: [artifact.id for artifact in artifacts] for name, artifacts in named.items()}


def _log_path(ask: Ask, run: RunRecord, node: NodeRun) -> Path:
    # The names are the store's own, not the address's.
    return ask.site.log_root / run.id / f"{node.node}.log"


def log_file(store: Queries, ask: Ask) -> Path:
    """The whole log.

    Raises:
        NotFoundError: There is none.
    """
    run = search.run_of(store, ask.match["run"])
    node = search.node_of(run, ask.match["node"])
    path = _log_path(ask, run, node)
    if not path.is_file():
        name = f"{node.node} of {run.id}"
        raise NotFoundError(f"{name} has left no log.", [(name, URLS.node(run.id, node.node))])
    return path
