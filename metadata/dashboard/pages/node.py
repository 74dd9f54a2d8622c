"""A node of a run: what it took, what it put out, what it rests on, why it ran, and what it logged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from metadata.dashboard import contents, finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.fingerprints import PROPERTY
from metadata.queries import Queries
from metadata.records import STATE_WORDS, UNFINISHED, ArtifactRecord, NodeRun, RunRecord
from metadata.values import fingerprint_of, node_values


def page(store: Queries, ask: Ask) -> Page:
    """The page of a node."""
    run = finding.run_of(store, ask.match["run"])
    node = finding.node_of(run, ask.match["node"])
    made_with = fingerprint_of(node)
    inputs, outputs = store.inputs(node.id), store.outputs(node.id)
    path = _log_path(ask, run, node)
    text, cut = contents.tail(path) if path.is_file() else ("", False)
    order = list(run.nodes)
    index = order.index(node)
    note = ask.site.note(ask.site.log_root / run.id, node.node) if node.state == "RUNNING" else ""
    why = ask.site.why(store, run.pipeline, node.node, node.id)
    origin = _origin(store, node, outputs)
    properties = {name: value for name, value in node.properties.items() if name != PROPERTY}
    return Page(
        "node.html",
        f"{node.node} of {run.id}",
        lambda: {
            "run": run,
            "node": node,
            "state": STATE_WORDS[node.state],
            "note": note,
            "why": why,
            "origin": origin,
            "made_with": made_with,
            "inputs": inputs,
            "outputs": outputs,
            "properties": properties,
            "log": text,
            "log_cut": cut,
            "log_there": path.is_file(),
            "earlier": order[index - 1].node if index else None,
            "later": order[index + 1].node if index + 1 < len(order) else None,
        },
        node_values(node)
        | {"run": run.id, "why": why, "origin": origin, "inputs": _ids(inputs), "outputs": _ids(outputs)}
        | {"log_bytes": path.stat().st_size if path.is_file() else None, "note": note}
        | {"fingerprint": asdict(made_with) if made_with else None, "properties": properties},
        section="Runs",
        live=node.state in UNFINISHED,
    )


def _origin(store: Queries, node: NodeRun, outputs: dict[str, list[ArtifactRecord]]) -> str | None:
    """The run in which a cached node really ran."""
    first = next((artifact for found in outputs.values() for artifact in found), None)
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
    """Where the whole log is, or would be."""
    run = finding.run_of(store, ask.match["run"])
    return _log_path(ask, run, finding.node_of(run, ask.match["node"]))


def checked(path: Path, ask: Ask) -> Path:
    """The log's file.

    Raises:
        NotFoundError: There is none.
    """
    if not path.is_file():
        run_id, node = ask.match["run"], ask.match["node"]
        raise NotFoundError(f"{node} of {run_id} has left no log.", [(f"{node} of {run_id}", URLS.node(run_id, node))])
    return path
