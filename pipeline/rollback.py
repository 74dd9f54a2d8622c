"""Going back to an older version: it is pushed again under a new number, and the metadata store is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from components.errors import PushError
from components.pusher import record, versions
from components.pusher.versions import Version
from metadata.store import NODE_CONTEXT, PIPELINE_CONTEXT
from pipeline import lock, stores
from pipeline.environment import Environment
from pipeline.objects import mirror

NODE = "Rollback"
"""What a rollback is called in the metadata store, beside the pipeline's own nodes."""

OUTPUT = "pushed_model"
PUSHED_MODEL = "PushedModel"


@dataclass(frozen=True)
class Done:
    """A rollback.

    Attributes:
        path: The new version's folder.
        served_before: The version that was served.
        restored: The version whose content the new one has.
        recorded: Whether the metadata store, if there is one, knows of it.
    """

    path: Path
    served_before: int
    restored: int
    recorded: bool


def roll_back(name: str, environment: Environment, to: int | None = None) -> Done:
    """Serves an older version again.

    Args:
        name: The recipe's name.
        environment: Where its models are served from.
        to: The version to go back to; None for the newest of another content than what is served.

    Raises:
        PushError: There is no such version, or it cannot be pushed again.
        MillraceError: A run of the recipe is going on.
    """
    base = environment.serving_root / name
    with lock.held(name, environment):
        existing = versions.find(base)
        target = choose(base, existing, to)
        served = existing[-1]
        path, manifest = versions.restore(base, target, served)
        properties = record.pushed(path, manifest)
        recorded = stores.exists(environment)
        if recorded:
            _record(name, environment, properties)
    return Done(path, served.number, target.number, recorded)


def choose(base: Path, existing: Sequence[Version], to: int | None) -> Version:
    """The version to go back to.

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
    there = {version.number: version for version in existing}
    if to not in there:
        raise PushError(f"{base} has no version {to}; it could go back to {numbers or 'none'}.")
    if there[to].content == served.content:
        what = "is served already" if to == served.number else f"is what version {served.number} serves already"
        raise PushError(f"version {to} {what}; it could go back to {numbers or 'none'}.")
    return there[to]


def _record(name: str, environment: Environment, properties: record.Properties) -> None:
    """Adds the rollback as an execution with its PushedModel, and the versions before it as its inputs."""
    store = stores.writable(environment)
    uri = _written(name, environment, properties)
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
            held = holder.custom_properties[key]
            if isinstance(value, int):
                held.int_value = value
            else:
                held.string_value = value
    given = {
        "rolled_back": _artifact_of(store, properties, str(properties["rolled_back_from"])),
        "restored": _artifact_of(store, properties, str(properties["restored_version"])),
    }
    events = [(artifact, _event(mlmd_pb2.Event.INPUT, key)) for key, artifact in given.items() if artifact is not None]
    contexts = [_context(store, PIPELINE_CONTEXT, name), _context(store, NODE_CONTEXT, f"{name}.{NODE}")]
    store.put_execution(
        execution,
        [*events, (pushed, _event(mlmd_pb2.Event.OUTPUT, OUTPUT))],
        contexts,
        reuse_context_if_already_exist=True,
    )


def _written(name: str, environment: Environment, properties: record.Properties) -> str:
    """Writes the artifact's file, and returns where the artifact is."""
    folder = environment.pipeline_root / name / NODE / OUTPUT / str(properties["pushed_version"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pushed.json").write_text(json.dumps(properties, indent=2), encoding="utf-8")
    objects = mirror.use(environment)
    if objects is None:
        return str(folder)
    uri = objects.uri_of(str(folder))
    objects.send(uri)
    return uri


def _artifact_of(store: mlmd.MetadataStore, properties: record.Properties, version: str) -> mlmd_pb2.Artifact | None:
    """The PushedModel of a version in the same folder, where the store has it."""
    destination = str(Path(str(properties["pushed_destination"])).parent / version)
    found = [
        artifact
        for artifact in store.get_artifacts_by_type(PUSHED_MODEL)
        if artifact.custom_properties["pushed_destination"].string_value == destination
    ]
    return max(found, key=lambda artifact: artifact.id, default=None)


def _event(kind: int, key: str) -> mlmd_pb2.Event:
    event = mlmd_pb2.Event(type=kind)
    event.path.steps.add().key = key
    event.path.steps.add().index = 0
    return event


def _context(store: mlmd.MetadataStore, type_name: str, name: str) -> mlmd_pb2.Context:
    found = store.get_context_by_type_and_name(type_name, name)
    if found is not None:
        return found
    return mlmd_pb2.Context(type_id=store.put_context_type(mlmd_pb2.ContextType(name=type_name)), name=name)
