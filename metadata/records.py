"""The contents of ML Metadata as plain typed records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata.files import LOCAL_FILES, WRITTEN, Files

KILLED = "KILLED"
"""The state of what began, never ended, and has no process left; ML Metadata has no name for it."""

UNFINISHED = frozenset({"NEW", "RUNNING"})
"""The states of what is, as far as we know, still going on."""

NEVER_ENDED = UNFINISHED | {KILLED}
"""The states of what ML Metadata records as still going on."""

STATE_WORDS = {
    "NEW": "running",
    "RUNNING": "running",
    "COMPLETE": "done",
    "CACHED": "cached",
    "FAILED": "failed",
    "CANCELED": "stopped",
    KILLED: "killed",
}
"""The states of executions in words for users."""

QUIET_NODES = frozenset({"BaselineModel"})
"""Nodes that do no work of their own and would only make tables longer."""


@dataclass(frozen=True)
class ArtifactRecord:
    """An artifact of a node run.

    Attributes:
        id: ML Metadata's id.
        type: The artifact type's name, such as `Model`.
        uri: Where the artifact is stored: a folder, or a URI such as `s3://bucket/key`.
        state: ML Metadata's state name, such as `LIVE`.
        properties: Properties and custom properties together.
        created: Milliseconds since 1970.
        files: Reads the files of artifacts.
    """

    id: int
    type: str
    uri: str
    state: str
    properties: dict[str, Any]
    created: int
    files: Files = field(default=LOCAL_FILES, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """The local folder with its files, downloaded if need be; the folder does not exist if they are gone.

        Raises:
            UnavailableError: The artifact's store cannot be reached.
        """
        return self.files.folder(self.uri)

    def file(self, name: str) -> Path:
        """The local path of one of its files, which alone is downloaded; it does not exist if there is no such file.

        Raises:
            UnavailableError: The artifact's store cannot be reached.
        """
        return self.files.file(self.uri, name)


@dataclass(frozen=True)
class NodeRun:
    """One execution of a node in a run.

    Attributes:
        id: ML Metadata's execution id.
        node: The node's id in the pipeline.
        state: ML Metadata's state name: NEW, RUNNING, COMPLETE, FAILED, CACHED or CANCELED; or KILLED.
        started: Milliseconds since 1970.
        updated: Milliseconds since 1970; the end, once ML Metadata's state is final.
        properties: Execution properties by name.
    """

    id: int
    node: str
    state: str
    started: int
    updated: int
    properties: dict[str, Any] = field(repr=False)

    @property
    def succeeded(self) -> bool:
        """Whether the outputs of this execution can be trusted."""
        return self.state in {"COMPLETE", "CACHED"}

    @property
    def ended(self) -> int | None:
        """Milliseconds since 1970; None while it is going on, and if it was killed, for nobody recorded when."""
        return None if self.state in NEVER_ENDED else self.updated

    @property
    def seconds(self) -> float:
        """From the start to the last update."""
        return (self.updated - self.started) / 1000


@dataclass(frozen=True)
class Place:
    """What an execution belongs to.

    Attributes:
        pipeline: The pipeline's name.
        run: The run's id; None for what happened outside any run, such as a rollback.
        node: The node's id in the pipeline.
    """

    pipeline: str
    run: str | None
    node: str


@dataclass(frozen=True)
class RunRecord:
    """A run of a pipeline.

    Attributes:
        number: ML Metadata's context id; a later run has a higher one.
        id: The run's id.
        pipeline: The pipeline's name.
        started: Milliseconds since 1970.
        nodes: The last run of each node, in the order they began.
        pushed_version: The version that it pushed, or None.
        killed: Whether it was killed before its first node began.
    """

    number: int
    id: str
    pipeline: str
    started: int
    nodes: tuple[NodeRun, ...]
    pushed_version: str | None
    killed: bool = False

    @property
    def state(self) -> str:
        """The state of the whole run: NEW, RUNNING, FAILED, CANCELED, KILLED or COMPLETE."""
        states = {node.state for node in self.nodes}
        for state in ("FAILED", "CANCELED", KILLED):
            if state in states:
                return state
        if states & UNFINISHED:
            return "RUNNING"
        if states:
            return "COMPLETE"
        return KILLED if self.killed else "NEW"

    @property
    def goes_on(self) -> bool:
        """Whether one of its nodes is running, or none has begun yet; between two nodes the records cannot tell."""
        return self.state in UNFINISHED

    @property
    def ended(self) -> int | None:
        """Milliseconds since 1970; None while it is going on, and if it was killed, for nobody recorded when."""
        if self.goes_on or self.state == KILLED:
            return None
        return max(node.updated for node in self.nodes)


@dataclass(frozen=True)
class MadeArtifact:
    """An artifact and the node run that made it.

    Attributes:
        artifact: The artifact.
        execution: The id of the execution that first output it; None if none did.
        place: The pipeline, run and node of that execution; None if there is none.
    """

    artifact: ArtifactRecord
    execution: int | None
    place: Place | None


@dataclass(frozen=True)
class Deployment:
    """The version that a serving folder serves.

    Attributes:
        folder: The folder that holds the versions.
        version: The served version.
        pushed: The PushedModel artifact.
        pushed_by: The node run that pushed it; the node is `Rollback` if it restored an older version.
        model: The id of the Model artifact that is served, if the push recorded it.
        restored: The version that a rollback restored, or None.
    """

    folder: str
    version: str
    pushed: ArtifactRecord
    pushed_by: Place | None
    model: int | None
    restored: str | None


def node_run(execution: mlmd_pb2.Execution, node: str) -> NodeRun:
    """An execution of a node as a record."""
    return NodeRun(
        id=execution.id,
        node=node,
        state=mlmd_pb2.Execution.State.Name(execution.last_known_state),
        started=execution.create_time_since_epoch,
        updated=execution.last_update_time_since_epoch,
        properties=_values(execution.properties.items()) | _values(execution.custom_properties.items()),
    )


def changed_files(artifacts: Iterable[ArtifactRecord], files: Files) -> dict[str, str]:
    """Which of these artifacts are gone, or are not what their nodes wrote, by URI; see `Files.changed`.

    Raises:
        UnavailableError: A store cannot be reached.
    """
    return files.changed({artifact.uri: artifact.properties.get(WRITTEN) for artifact in artifacts})


def artifact_record(artifact: mlmd_pb2.Artifact, files: Files = LOCAL_FILES) -> ArtifactRecord:
    """An artifact as a record that reads its files through `files`."""
    return ArtifactRecord(
        id=artifact.id,
        type=artifact.type,
        uri=artifact.uri,
        state=mlmd_pb2.Artifact.State.Name(artifact.state),
        properties=_values(artifact.properties.items()) | _values(artifact.custom_properties.items()),
        created=artifact.create_time_since_epoch,
        files=files,
    )


def _values(properties: Iterable[tuple[str, mlmd_pb2.Value]]) -> dict[str, Any]:
    return {name: getattr(value, value.WhichOneof("value")) for name, value in properties if value.WhichOneof("value")}
