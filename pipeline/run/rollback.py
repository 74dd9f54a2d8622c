"""The versions that can be served, where each came from, and rollbacks to an older one.

A rollback pushes an older version again under a new number and records that in the metadata store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from rich.table import Table
from rich.text import Text

from components.pusher import manifest, versions
from components.pusher.versions import Version, withdrawn_models
from contracts.errors import PushError
from contracts.evaluation import SUMMARY_FILE, read_summary
from metadata.store import NODE_CONTEXT, PIPELINE_CONTEXT, Store
from pipeline.run import lock
from pipeline.run.workplace import Workplace

Metrics = dict[str, float | None]


@dataclass(frozen=True)
class VersionEntry:
    """A version and what is known about it.

    Attributes:
        number: The version's number.
        pushed: When it was pushed, in local time; empty without a manifest.
        source: The run that pushed it, or the version that a rollback restored.
        model: The id of its Model artifact; empty without a manifest.
        metrics: The Evaluator's values by metric; empty if the store does not have them.
        note: `served`, `rolled back`, or nothing.
    """

    number: int
    pushed: str
    source: str
    model: str
    metrics: Metrics
    note: str


def version_entries(name: str, existing: Sequence[Version], store: Store | None) -> list[VersionEntry]:
    """The entries of a recipe's versions, newest first.

    Args:
        name: The recipe's name.
        existing: The versions, oldest first.
        store: The metadata store, which has their metrics; None if there is none.
    """
    metrics = _metrics_by_model(name, store) if store else {}
    withdrawn = set(withdrawn_models(list(existing)))
    entries = []
    for version in reversed(existing):
        pushed = version.manifest
        note = "served" if version is existing[-1] else ""
        if pushed is None:
            entries.append(VersionEntry(version.number, "", "not pushed by a run", "", {}, note))
            continue
        source = f"rollback to {pushed.rollback.restored_version}" if pushed.rollback else pushed.origin.run_id
        if not note and pushed.model_digest in withdrawn:
            note = "rolled back"
        when = pushed.pushed.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        model = pushed.origin.model_id
        entries.append(VersionEntry(version.number, when, source, str(model), metrics.get(model, {}), note))
    return entries


def versions_table(name: str, shown: Sequence[VersionEntry]) -> Table:
    """The entries as a table."""
    table = Table(title=f"Versions of {name}", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    names = list(dict.fromkeys(metric for entry in shown for metric in entry.metrics))
    for heading in ("Version", "Pushed", "By", "Model", *names, ""):
        justify: Literal["left", "right"] = "right" if heading in {"Model", *names} else "left"
        table.add_column(heading, header_style="dim", justify=justify, no_wrap=True)
    for entry in shown:
        values = [_number(entry.metrics.get(metric)) for metric in names]
        note = Text(entry.note, style="bold green" if entry.note == "served" else "yellow")
        table.add_row(str(entry.number), entry.pushed, entry.source, entry.model, *values, note)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _metrics_by_model(name: str, store: Store) -> dict[int, Metrics]:
    """The metrics of each model's latest evaluation."""
    metrics: dict[int, Metrics] = {}
    for record in store.history(name, "Evaluator"):
        models = store.inputs(record.id).get("model", [])
        evaluations = store.outputs(record.id).get("evaluation", [])
        if not (record.succeeded and models and evaluations) or models[0].id in metrics:
            continue
        if evaluations[0].file(SUMMARY_FILE).exists():
            metrics[models[0].id] = read_summary(evaluations[0]).values
    return metrics


NODE = "Rollback"
"""The node name of rollbacks in the metadata store, beside the pipeline's nodes."""

OUTPUT = "pushed_model"
PUSHED_MODEL = "PushedModel"


@dataclass(frozen=True)
class Rollback:
    """A completed rollback.

    Attributes:
        path: The new version's folder.
        served_before: The version that was served before.
        restored: The version whose content the new one has.
        recorded: Whether it was recorded in the metadata store; False if there is none.
    """

    path: Path
    served_before: int
    restored: int
    recorded: bool


def roll_back(name: str, workplace: Workplace, to: int | None = None) -> Rollback:
    """Serves an older version again.

    Args:
        name: The recipe's name.
        workplace: Where its models are served from.
        to: The version to go back to; None: the newest whose content differs from what is served.

    Raises:
        PushError: There is no such version, or it cannot be pushed again.
        MillraceError: A run of the recipe is going on.
    """
    base = workplace.environment.serving_root / name
    with lock.held(name, workplace.environment):
        existing = versions.find_versions(base)
        target = choose_version(base, existing, to)
        served = existing[-1]
        path, restored = versions.restore_version(base, target, served)
        properties = manifest.pushed_properties(path, restored)
        recorded = workplace.has_store
        if recorded:
            _record_rollback(name, workplace, properties)
    return Rollback(path, served.number, target.number, recorded)


def choose_version(base: Path, existing: Sequence[Version], to: int | None) -> Version:
    """Chooses the version to go back to.

    Raises:
        PushError: There is none.
    """
    if not existing:
        raise PushError(f"there is nothing to roll back to: {base} holds no version.")
    served = existing[-1]
    others = [version for version in existing if version.content != served.content]
    numbers = ", ".join(str(version.number) for version in others)
    if to is None:
        if not others:
            raise PushError(
                f"there is nothing to roll back to: {base} holds no model but that of version {served.number}, "
                "which is served."
            )
        return others[-1]
    by_number = {version.number: version for version in existing}
    if to not in by_number:
        raise PushError(f"{base} has no version {to}; it could go back to {numbers or 'none'}.")
    if by_number[to].content == served.content:
        reason = "is served already" if to == served.number else f"is what version {served.number} serves already"
        raise PushError(f"version {to} {reason}; it could go back to {numbers or 'none'}.")
    return by_number[to]


def _record_rollback(name: str, workplace: Workplace, properties: manifest.Properties) -> None:
    """Records the rollback as an execution with its PushedModel, and the two older versions as its inputs."""
    store = workplace.open_for_writing()
    uri = _write_artifact(name, workplace, properties)
    execution = mlmd_pb2.Execution(
        type_id=store.put_execution_type(
            mlmd_pb2.ExecutionType(name=NODE, base_type=mlmd_pb2.ExecutionType.DEPLOY), can_add_fields=True
        ),
        last_known_state=mlmd_pb2.Execution.COMPLETE,
    )
    artifact_type = store.put_artifact_type(mlmd_pb2.ArtifactType(name=PUSHED_MODEL), can_omit_fields=True)
    pushed = mlmd_pb2.Artifact(type_id=artifact_type, uri=uri, state=mlmd_pb2.Artifact.LIVE)
    for holder in (execution, pushed):
        for key, value in properties.items():
            if isinstance(value, int):
                holder.custom_properties[key].int_value = value
            else:
                holder.custom_properties[key].string_value = value
    inputs = {
        "rolled_back": _artifact_of(store, properties, str(properties["rolled_back_from"])),
        "restored": _artifact_of(store, properties, str(properties["restored_version"])),
    }
    events = [(artifact, _event(mlmd_pb2.Event.INPUT, key)) for key, artifact in inputs.items() if artifact is not None]
    contexts = [_context(store, PIPELINE_CONTEXT, name), _context(store, NODE_CONTEXT, f"{name}.{NODE}")]
    store.put_execution(
        execution,
        [*events, (pushed, _event(mlmd_pb2.Event.OUTPUT, OUTPUT))],
        contexts,
        reuse_context_if_already_exist=True,
    )


def _write_artifact(name: str, workplace: Workplace, properties: manifest.Properties) -> str:
    """Writes the artifact's file and returns the artifact's URI."""
    folder = workplace.environment.pipeline_root / name / NODE / OUTPUT / str(properties["pushed_version"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pushed.json").write_text(json.dumps(properties, indent=2), encoding="utf-8")
    if workplace.mirror is None:
        return str(folder)
    uri = workplace.mirror.uri_of(str(folder))
    workplace.mirror.upload(uri)
    return uri


def _artifact_of(store: mlmd.MetadataStore, properties: manifest.Properties, version: str) -> mlmd_pb2.Artifact | None:
    """The PushedModel of a version in the same folder, if the store has it."""
    destination = str(Path(str(properties["pushed_destination"])).parent / version)
    pushed = [
        artifact
        for artifact in store.get_artifacts_by_type(PUSHED_MODEL)
        if artifact.custom_properties["pushed_destination"].string_value == destination
    ]
    return max(pushed, key=lambda artifact: artifact.id, default=None)


def _event(kind: int, key: str) -> mlmd_pb2.Event:
    event = mlmd_pb2.Event(type=kind)
    event.path.steps.add().key = key
    event.path.steps.add().index = 0
    return event


def _context(store: mlmd.MetadataStore, type_name: str, name: str) -> mlmd_pb2.Context:
    context = store.get_context_by_type_and_name(type_name, name)
    if context is not None:
        return context
    return mlmd_pb2.Context(type_id=store.put_context_type(mlmd_pb2.ContextType(name=type_name)), name=name)
