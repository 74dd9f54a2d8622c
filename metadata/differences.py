"""What differs between two runs: settings, code, packages, data, schema and metrics."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.evaluation import SUMMARY_FILE, read_summary
from contracts.file_names import SCHEMA_FILE
from contracts.fingerprints import PROPERTY, Fingerprint
from metadata.queries import Queries
from metadata.records import ArtifactRecord, RunRecord


@dataclass(frozen=True)
class Change:
    """A value that differs; None if a run does not have it.

    Attributes:
        name: The setting, file, package, property or metric.
        before: Its value in the first run.
        after: Its value in the second run.
    """

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Differences:
    """What differs between two runs.

    Attributes:
        settings: Settings by dotted key.
        code: Digests of source files.
        packages: Versions of packages.
        data: Digests of raw files, and the rows and the span that were read.
        schema: The lines of a unified diff of the two schemas; empty where they are equal.
        metrics: The Evaluator's values.
    """

    settings: list[Change]
    code: list[Change]
    packages: list[Change]
    data: list[Change]
    schema: list[str]
    metrics: list[Change]


@dataclass(frozen=True)
class _Facts:
    settings: dict[str, Any]
    code: dict[str, str]
    packages: dict[str, str]
    data: dict[str, Any]
    schema: list[str]
    metrics: dict[str, float | None]


def between(store: Queries, before: RunRecord, after: RunRecord) -> Differences:
    """What differs between two runs; files that are gone from the disk count as absent."""
    old, new = _facts(store, before), _facts(store, after)
    return Differences(
        settings=_changes(old.settings, new.settings),
        code=_changes(old.code, new.code),
        packages=_changes(old.packages, new.packages),
        data=_changes(old.data, new.data),
        schema=list(difflib.unified_diff(old.schema, new.schema, before.id, after.id, n=2, lineterm="")),
        metrics=_changes(old.metrics, new.metrics),
    )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    names = sorted(before.keys() | after.keys())
    return [Change(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]


def _facts(store: Queries, run: RunRecord) -> _Facts:
    outputs = store.outputs_of(node.id for node in run.nodes)
    artifacts = {
        name: records[0]
        for node in run.nodes
        # The outputs of a node that failed or is still running cannot be trusted.
        if node.succeeded
        for name, records in outputs.get(node.id, {}).items()
    }
    by_node = fingerprints(store, run, outputs)
    example_gen = by_node.get("ExampleGen", Fingerprint())
    examples = artifacts.get("examples")
    ingested = {} if examples is None else {k: v for k, v in examples.properties.items() if k in {"num_rows", "span"}}
    return _Facts(
        settings={key: value for each in by_node.values() for key, value in each.settings.items()},
        code={path: digest for each in by_node.values() for path, digest in each.code.items()},
        packages={name: version for each in by_node.values() for name, version in each.packages.items()},
        data=example_gen.files | ingested,
        schema=_text(artifacts.get("schema"), SCHEMA_FILE).splitlines(),
        metrics=_metrics(artifacts.get("evaluation")),
    )


def fingerprints(
    store: Queries, run: RunRecord, outputs: Mapping[int, Mapping[str, list[ArtifactRecord]]]
) -> dict[str, Fingerprint]:
    """The fingerprints of a run by node; a cached node has that of the execution that did the work.

    Args:
        store: The store.
        run: The run.
        outputs: The output artifacts of its node runs, by execution and output name.
    """
    texts = {node.node: node.properties[PROPERTY] for node in run.nodes if PROPERTY in node.properties}
    taken_over = {
        artifacts[0].id: node.node
        for node in run.nodes
        if node.node not in texts
        for artifacts in outputs.get(node.id, {}).values()
    }
    producers = store.producers(taken_over)
    origins = store.node_runs_by_id(producers.values())
    for artifact, execution in producers.items():
        if execution in origins and PROPERTY in origins[execution][0].properties:
            texts[taken_over[artifact]] = origins[execution][0].properties[PROPERTY]
    return {node: Fingerprint.from_json(text) for node, text in texts.items()}


def _text(artifact: ArtifactRecord | None, file: str) -> str:
    path = None if artifact is None else artifact.file(file)
    return path.read_text(encoding="utf-8") if path and path.exists() else ""


def _metrics(evaluation: ArtifactRecord | None) -> dict[str, float | None]:
    if evaluation is None or not evaluation.file(SUMMARY_FILE).exists():
        return {}
    return read_summary(evaluation).values
