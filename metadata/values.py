"""Records as the JSON that `--json` prints and the dashboard's `?format=json` returns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from contracts.fingerprints import PROPERTY, Fingerprint
from metadata.lineage import Lineage, Step
from metadata.records import QUIET_NODES, STATE_WORDS, MadeArtifact, NodeRun, RunRecord

MILLISECONDS = 1000
DIGEST_DIGITS = 16

STATES = STATE_WORDS | {"NEW": "starting"}
"""The states of runs in words for users."""


def iso_time(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as ISO 8601, in local time with its UTC offset."""
    return (
        None if milliseconds is None else datetime.fromtimestamp(milliseconds / MILLISECONDS).astimezone().isoformat()
    )


def run_values(run: RunRecord) -> dict[str, Any]:
    """A run as JSON; the counts leave out nodes that do no work of their own."""
    counted = [node for node in run.nodes if node.node not in QUIET_NODES]
    return {
        "run": run.id,
        "recipe": run.pipeline,
        "state": STATES[run.state],
        "started": iso_time(run.started),
        "ended": iso_time(run.ended),
        "seconds": None if run.ended is None else (run.ended - run.started) / MILLISECONDS,
        "ran": sum(node.state == "COMPLETE" for node in counted),
        "cached": sum(node.state == "CACHED" for node in counted),
        "failed": sum(node.state == "FAILED" for node in counted),
        "pushed_version": run.pushed_version,
    }


def node_values(node: NodeRun) -> dict[str, Any]:
    """A node run as JSON."""
    return {
        "node": node.node,
        "execution": node.id,
        "state": STATE_WORDS[node.state],
        "started": iso_time(node.started),
        "ended": iso_time(node.ended),
        "seconds": None if node.ended is None else node.seconds,
    }


def artifact_values(entry: MadeArtifact) -> dict[str, Any]:
    """An artifact as JSON."""
    record, place = entry.artifact, entry.place
    return {
        "id": record.id,
        "type": record.type,
        "uri": record.uri,
        "state": record.state,
        "created": iso_time(record.created),
        "execution": entry.execution,
        "run": place.run if place else None,
        "node": place.node if place else None,
        "properties": record.properties,
    }


def lineage_values(traced: Lineage) -> dict[str, Any]:
    """A part of the lineage graph as JSON."""
    return {
        "start": traced.start,
        "direction": traced.direction,
        "whole": traced.whole,
        "artifacts": [
            {"id": a.id, "type": a.type, "uri": a.uri, "properties": a.properties} for a in traced.artifacts.values()
        ],
        "steps": [_step_values(step) for step in traced.steps.values()],
    }


def _step_values(step: Step) -> dict[str, Any]:
    fingerprint = fingerprint_of(step.node_run)
    return {
        "execution": step.node_run.id,
        "run": step.place.run,
        "node": step.place.node,
        "inputs": step.inputs,
        "outputs": step.outputs,
        "code_digest": fingerprint.code_digest if fingerprint else None,
        "packages": fingerprint.packages if fingerprint else {},
        "files": fingerprint.files if fingerprint else {},
    }


def fingerprint_of(node: NodeRun) -> Fingerprint | None:
    """The fingerprint of a node run; None if it has none, as in a partial run."""
    text = node.properties.get(PROPERTY)
    return Fingerprint.from_json(text) if text else None
