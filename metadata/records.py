"""What ML Metadata holds, as plain typed records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata.files import LOCAL_FILES, Files

KILLED = "KILLED"
"""The state of what began, never ended, and is done by no process any more; ML Metadata has no name for it."""

UNFINISHED = frozenset({"NEW", "RUNNING"})
"""The states of what goes on, as far as is known."""

NEVER_ENDED = UNFINISHED | {KILLED}
"""The states of what ML Metadata records as going on."""

STATE_WORDS = {
    "NEW": "running",
    "RUNNING": "running",
    "COMPLETE": "done",
    "CACHED": "cached",
    "FAILED": "failed",
    "CANCELED": "stopped",
    KILLED: "killed",
}
"""The state names of executions in the user's words."""

QUIET_NODES = frozenset({"BaselineModel"})
"""Nodes that do no work of their own and would only lengthen a table."""


@dataclass(frozen=True)
class ArtifactRecord:
    """An artifact of a node run.

    Attributes:
        id: ML Metadata's id.
        type: The artifact type's name, such as `Model`.
        uri: Where the artifact lies: a folder, or such as `s3://bucket/key`.
        state: ML Metadata's state name, such as `LIVE`.
        properties: Properties and custom properties together.
        created: Milliseconds since 1970.
        files: Knows how to read the files of artifacts.
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
        """The folder with its files, brought here from where they lie; one that is not there where they are gone.

        Raises:
            UnavailableError: What holds them cannot be reached.
        """
        return self.files.whole(self.uri)

    def file(self, name: str) -> Path:
        """One file of it, which alone is brought here; a path that is not there where it has none.

        Raises:
            UnavailableError: What holds it cannot be reached.
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
        updated: Milliseconds since 1970; the end, once the state is one that ML Metadata knows to be final.
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
        """Milliseconds since 1970; None while it goes on, and where it was killed: nobody wrote down when."""
        return None if self.state in NEVER_ENDED else self.updated

    @property
    def seconds(self) -> float:
        """From the start to the last update."""
        return (self.updated - self.started) / 1000


@dataclass(frozen=True)
class Place:
    """Where an execution belongs.

    Attributes:
        pipeline: The pipeline's name.
        run: The run's id; None for what no run did, such as a rollback.
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
        """The state name for the whole: NEW, RUNNING, FAILED, CANCELED, KILLED or COMPLETE."""
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
        """Whether a node of it is running, or none has begun yet; between two nodes it is not known here."""
        return self.state in UNFINISHED

    @property
    def ended(self) -> int | None:
        """Milliseconds since 1970; None while it goes on, and where it was killed: nobody wrote down when."""
        if self.goes_on or self.state == KILLED:
            return None
        return max(node.updated for node in self.nodes)


@dataclass(frozen=True)
class MadeArtifact:
    """An artifact and the node run that made it.

    Attributes:
        artifact: The artifact.
        execution: The id of the execution that first put it out; None where none did.
        place: What that execution is a run of; None where there is none.
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
        made: The node run that pushed it; the node is `Rollback` where it restored an older version.
        model: The id of the Model artifact that it serves, where the push recorded it.
        restored: The version that a rollback restored, or None.
    """

    folder: str
    version: str
    pushed: ArtifactRecord
    made: Place | None
    model: int | None
    restored: str | None


def node_run(execution: mlmd_pb2.Execution, node: str) -> NodeRun:
    """An execution as a record; `node` is the node that it is a run of."""
    return NodeRun(
        id=execution.id,
        node=node,
        state=mlmd_pb2.Execution.State.Name(execution.last_known_state),
        started=execution.create_time_since_epoch,
        updated=execution.last_update_time_since_epoch,
        properties=_values(execution.properties.items()) | _values(execution.custom_properties.items()),
    )


def artifact_record(artifact: mlmd_pb2.Artifact, files: Files = LOCAL_FILES) -> ArtifactRecord:
    """An artifact as a record, whose files are read through `files`."""
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
