"""Why a node ran or was cached, in a sentence that names what changed; and why the Evaluator decided as it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.content import ContentError
from contracts.errors import MillraceError
from contracts.evaluation import SUMMARY_FILE, read_summary
from metadata.records import KILLED, changed_files
from metadata.store import NodeRun, Store
from pipeline.plan.fingerprint import PROPERTY, Fingerprint
from pipeline.plan.table import EVALUATOR_NODE, TABLE

SECTIONS = {"settings": "setting", "code": "code of", "packages": "package", "files": "contents of"}
VERBS = {
    "COMPLETE": "ran",
    "FAILED": "ran (and failed)",
    "CANCELED": "ran (and was stopped)",
    KILLED: "ran (and was killed)",
}
MAX_NAMED = 3
ALWAYS = {node.name: f"{node.name} runs every time: {node.uncached}." for node in TABLE if node.looks_up}
UNCACHED = {node.name: node.uncached for node in TABLE if node.uncached}


def explain(store: Store, pipeline: str, node: str, execution: int | None = None) -> str:
    """Explains a run of a node, its latest or that of an execution id, in a sentence, and the Evaluator's verdict.

    Raises:
        MillraceError: The node has never run.
    """
    latest = next(store.latest(pipeline, node, execution), None)
    if latest is None:
        raise MillraceError(f"{node} of {pipeline} has not run yet.", f"Run it with `millrace run {pipeline}`.")
    return f"{_why_it_ran(store, pipeline, node, latest)}{_verdict(store, latest)}"


def _verdict(store: Store, latest: NodeRun) -> str:
    """Why the Evaluator blessed the model or not; empty for other nodes, and where it left nothing."""
    if latest.node != EVALUATOR_NODE or not latest.succeeded:
        return ""
    evaluations = store.outputs(latest.id).get("evaluation", [])
    if not evaluations or not evaluations[-1].file(SUMMARY_FILE).exists():
        return ""
    try:
        summary = read_summary(evaluations[-1])
    except ContentError as error:
        return f" What came out of it cannot be told: {error}."
    return "".join(f" {sentence}" for sentence in filter(None, (summary.reason, *summary.not_judged)))


def _why_it_ran(store: Store, pipeline: str, node: str, latest: NodeRun) -> str:
    if node in ALWAYS:
        return ALWAYS[node]
    if latest.state == "CACHED":
        origin = _origin(store, latest)
        if _taken_over(latest):
            return f"{node} was taken from run {origin} as it was: the run began after it (--from)."
        return f"{node} was cached: its inputs, settings, code and packages are those of run {origin}."
    verb = VERBS.get(latest.state, "is running")
    earlier = store.latest(pipeline, node, latest.id - 1, succeeded=True)
    previous = next((record for record in earlier if not _taken_over(record)), None)
    if previous is None:
        return f"{node} {verb} because it had never run to its end before."
    return f"{node} {verb} because {_difference(store, latest, previous)}."


def _taken_over(record: NodeRun) -> bool:
    """Whether a partial run used the node's earlier result; such a record has neither inputs nor a fingerprint."""
    return record.state == "CACHED" and PROPERTY not in record.properties


def _difference(store: Store, latest: NodeRun, previous: NodeRun) -> str:
    changes = _fingerprint_changes(latest, previous)
    if changes:
        return f"{_listed(changes)} changed"
    new_inputs = _new_inputs(store, latest, previous)
    if new_inputs:
        reasons = [_producer_reason(store, name, artifact_id) for name, artifact_id in new_inputs]
        return _listed(reasons)
    if lost := _lost_outputs(store, previous):
        return f"its earlier outputs are no longer there: {lost}"
    return UNCACHED.get(latest.node, "it was told to (--force or --from): nothing that it depends on changed")


def _fingerprint_changes(latest: NodeRun, previous: NodeRun) -> list[str]:
    now, then = latest.properties.get(PROPERTY), previous.properties.get(PROPERTY)
    if not now or not then or now == then:
        return []
    new, old = Fingerprint.from_json(now), Fingerprint.from_json(then)
    changes: list[str] = []
    for section, word in SECTIONS.items():
        before, after = getattr(old, section), getattr(new, section)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                changes.append(_change(word, section, name, before, after))
    return changes


def _change(word: str, section: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if section in {"settings", "packages"}:
        return f"{word} {name} ({before.get(name, 'unset')} -> {after.get(name, 'unset')})"
    return f"the {word} {name}"


def _new_inputs(store: Store, latest: NodeRun, previous: NodeRun) -> list[tuple[str, int]]:
    then = {artifact.id for artifacts in store.inputs(previous.id).values() for artifact in artifacts}
    return [
        (name, artifact.id)
        for name, artifacts in store.inputs(latest.id).items()
        for artifact in artifacts
        if artifact.id not in then
    ]


def _producer_reason(store: Store, name: str, artifact_id: int) -> str:
    producer = store.producer(artifact_id)
    node = store.node_of(producer) if producer is not None else None
    return f"its input {name} is new" + (f": {node} ran before it" if node else "")


def _lost_outputs(store: Store, record: NodeRun) -> str:
    """The first output of a node run that is not there any more, or not as a whole; empty if there is none."""
    outputs = (artifact for artifacts in store.outputs(record.id).values() for artifact in artifacts)
    return next((f"{uri} {what}" for uri, what in changed_files(outputs, store.files).items()), "")


def _origin(store: Store, record: NodeRun) -> str:
    outputs = [artifact for artifacts in store.outputs(record.id).values() for artifact in artifacts]
    producer = store.producer(outputs[0].id) if outputs else None
    return (store.run_of(producer) if producer is not None else None) or "an earlier run"


def _listed(parts: list[str]) -> str:
    shown = parts[:MAX_NAMED]
    more = len(parts) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
