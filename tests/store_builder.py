"""Writes small metadata stores structured like TFX's, without TFX."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata import connection as connections
from pipeline.plan.fingerprint import PROPERTY, Fingerprint


class StoreBuilder:
    """Adds runs, executions and artifacts to a store.

    Args:
        where: The SQLite file, created if need be, or a connection.
        root: The root of the artifacts' folders, `<root>/<pipeline>/<node>/<output>/<execution>`.
        pipeline: The pipeline that everything belongs to.
    """

    def __init__(self, where: Path | mlmd_pb2.ConnectionConfig, root: Path, pipeline: str = "small") -> None:
        self.store = connections.connect(connections.sqlite(where) if isinstance(where, Path) else where)
        self._root = root
        self._pipeline = pipeline
        self._parent = self._context("pipeline", pipeline)
        self._run = 0

    def run(self, run_id: str) -> None:
        """Begins a run; later executions belong to it."""
        self._run = self._context("pipeline_run", run_id)
        self.store.put_parent_contexts([mlmd_pb2.ParentContext(child_id=self._run, parent_id=self._parent)])

    def node(
        self,
        node: str,
        state: str = "COMPLETE",
        fingerprint: Fingerprint | None = None,
        inputs: Mapping[str, int] | None = None,
        outputs: Mapping[str, int] | None = None,
    ) -> int:
        """Adds an execution of a node and returns its id; inputs and outputs are artifact ids by name."""
        execution_type = self.store.put_execution_type(mlmd_pb2.ExecutionType(name=f"{node}Type"))
        execution = mlmd_pb2.Execution(type_id=execution_type)
        execution.last_known_state = mlmd_pb2.Execution.State.Value(state)
        if fingerprint is not None:
            execution.custom_properties[PROPERTY].string_value = fingerprint.to_json()
        [execution_id] = self.store.put_executions([execution])
        contexts = [self._parent, self._run, self._context("node", f"{self._pipeline}.{node}")]
        associations = [mlmd_pb2.Association(context_id=c, execution_id=execution_id) for c in contexts]
        self.store.put_attributions_and_associations([], associations)
        self.link(execution_id, mlmd_pb2.Event.INPUT, inputs or {})
        self.link(execution_id, mlmd_pb2.Event.OUTPUT, outputs or {})
        return execution_id

    def link(self, execution_id: int, event_type: int, artifacts: Mapping[str, int]) -> None:
        """Adds events between an execution and artifacts by input or output name."""
        for name, artifact_id in artifacts.items():
            event = mlmd_pb2.Event(artifact_id=artifact_id, execution_id=execution_id, type=event_type)
            event.path.steps.add().key = name
            event.path.steps.add().index = 0
            self.store.put_events([event])

    def artifact(self, type_name: str, uri: Path | str | None = None, **properties: str | int | float) -> int:
        """Adds a live artifact and returns its id; without a `uri` it gets an existing folder of its own."""
        if uri is None:
            uri = self._root / self._pipeline / "artifacts" / f"{len(self.store.get_artifacts())}"
            Path(uri).mkdir(parents=True)
        artifact_type = self.store.put_artifact_type(mlmd_pb2.ArtifactType(name=type_name))
        artifact = mlmd_pb2.Artifact(type_id=artifact_type, uri=str(uri), state=mlmd_pb2.Artifact.LIVE)
        fields = {str: "string_value", int: "int_value", float: "double_value"}
        for name, value in properties.items():
            setattr(artifact.custom_properties[name], fields[type(value)], value)
        [artifact_id] = self.store.put_artifacts([artifact])
        return int(artifact_id)

    def _context(self, type_name: str, name: str) -> int:
        context = self.store.get_context_by_type_and_name(type_name, name)
        if context is not None:
            return int(context.id)
        context_type = self.store.put_context_type(mlmd_pb2.ContextType(name=type_name))
        [context_id] = self.store.put_contexts([mlmd_pb2.Context(type_id=context_type, name=name)])
        return int(context_id)
