"""Read-only queries of the metadata store, without importing TensorFlow.

The names are ML Metadata's and TFX's: a run is a context of type `pipeline_run`, a node's run an execution.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from ml_metadata.proto.metadata_store_service_pb2 import GetExecutionsByContextRequest
from typing_extensions import Self

from metadata import connection as connections
from metadata import paging
from metadata.files import LOCAL_FILES, Files
from metadata.records import KILLED, UNFINISHED, ArtifactRecord, NodeRun, Place, artifact_record, node_run

__all__ = ["NODE_CONTEXT", "PIPELINE_CONTEXT", "RUN_CONTEXT", "ArtifactRecord", "NodeRun", "Store"]

RUN_CONTEXT = "pipeline_run"
NODE_CONTEXT = "node"
PIPELINE_CONTEXT = "pipeline"

READ_AT_ONCE = 10
"""Runs of a node; usually only the newest few of a long history are needed."""

GoesOn = Callable[[str, str, str | None], bool]
"""Whether a node of a run may still be running: takes the pipeline, the run's id and the node; None: any node."""


def _unknown(_pipeline: str, _run: str, _node: str | None) -> bool:
    return True


class Store:
    """A metadata store opened for reading.

    Args:
        connection: The store.
        goes_on: Asked about nodes that never ended; if it returns False, they were killed.
        files: Reads the files of artifacts.
    """

    def __init__(
        self, connection: mlmd_pb2.ConnectionConfig, goes_on: GoesOn = _unknown, files: Files = LOCAL_FILES
    ) -> None:
        self._store = connections.connect(connection)
        self._goes_on = goes_on
        self._known_places: dict[int, Place | None] = {}
        self.files = files

    @classmethod
    def open(
        cls, connection: mlmd_pb2.ConnectionConfig, goes_on: GoesOn = _unknown, files: Files = LOCAL_FILES
    ) -> Self | None:
        """Opens a store, an SQLite file read-only; None while there is nothing in it yet.

        Args:
            connection: The store.
            goes_on: Asked about nodes that never ended; if it returns False, they were killed.
            files: Reads the files of artifacts.

        Raises:
            UnreachableError: A server cannot be reached, refuses us, or holds something else.
        """
        if connections.is_server(connection):
            store = cls(connection, goes_on, files)
            return store if store._store.get_context_types() else None
        path = Path(connection.sqlite.filename_uri)
        if not path.exists() or path.stat().st_size == 0:
            return None
        return cls(connections.sqlite(path, read_only=True), goes_on, files)

    @classmethod
    def open_sqlite(cls, path: Path) -> Self | None:
        """Opens the store in an SQLite file; None while there is none yet."""
        return cls.open(connections.sqlite(path))

    def run_ids(self, pipeline: str) -> list[str]:
        """The run ids of a pipeline, newest first."""
        return [context.name for context in self._runs_under(pipeline)]

    def node_runs(self, pipeline: str, run_id: str) -> dict[str, NodeRun]:
        """The node runs of one run by node, in the order in which they began."""
        context = self._context(RUN_CONTEXT, run_id)
        if context is None:
            return {}
        executions = self._store.get_executions_by_context(context.id)
        nodes = self._nodes_of(pipeline, [execution.id for execution in executions], num_runs=1)
        records = self._node_runs(
            executions, {number: Place(pipeline, run_id, node) for number, node in nodes.items()}
        ).values()
        return {record.node: record for record in sorted(records, key=lambda record: record.id)}

    def history(self, pipeline: str, node: str) -> list[NodeRun]:
        """All runs of one node, newest first."""
        context = self._context(NODE_CONTEXT, f"{pipeline}.{node}")
        if context is None:
            return []
        return self._runs_of(pipeline, node, self._store.get_executions_by_context(context.id))

    def latest(self, pipeline: str, node: str, until: int | None = None, succeeded: bool = False) -> Iterator[NodeRun]:
        """Yields the runs of one node, newest first, reading hardly more than are consumed.

        Args:
            pipeline: The pipeline's name.
            node: The node.
            until: Only executions up to this id.
            succeeded: Only those that succeeded, whose outputs can be trusted.
        """
        context = self._context(NODE_CONTEXT, f"{pipeline}.{node}")
        if context is None:
            return
        request = GetExecutionsByContextRequest(context_id=context.id)
        before = None if until is None else until + 1
        more = True
        while more:
            executions = paging.newest(self._store, request, READ_AT_ONCE, before)
            runs = self._runs_of(pipeline, node, executions)
            yield from (run for run in runs if run.succeeded or not succeeded)
            more = len(executions) == READ_AT_ONCE
            before = executions[-1].id if more else before

    def inputs(self, execution_id: int) -> dict[str, list[ArtifactRecord]]:
        """The input artifacts of an execution by input name."""
        return self._artifacts(execution_id, {mlmd_pb2.Event.INPUT, mlmd_pb2.Event.DECLARED_INPUT})

    def outputs(self, execution_id: int) -> dict[str, list[ArtifactRecord]]:
        """The output artifacts of an execution by output name."""
        return self._artifacts(execution_id, {mlmd_pb2.Event.OUTPUT, mlmd_pb2.Event.DECLARED_OUTPUT})

    def producer(self, artifact_id: int) -> int | None:
        """The id of the first execution that output an artifact."""
        events = self._store.get_events_by_artifact_ids([artifact_id])
        outputs = [event.execution_id for event in events if event.type == mlmd_pb2.Event.OUTPUT]
        return min(outputs, default=None)

    def run_of(self, execution_id: int) -> str | None:
        """The run an execution belongs to."""
        contexts = self._store.get_contexts_by_execution(execution_id)
        return next((context.name for context in contexts if context.type == RUN_CONTEXT), None)

    def node_of(self, execution_id: int) -> str | None:
        """The node an execution is a run of."""
        contexts = self._store.get_contexts_by_execution(execution_id)
        return next((context.name.partition(".")[2] for context in contexts if context.type == NODE_CONTEXT), None)

    def _node_runs(self, executions: Iterable[mlmd_pb2.Execution], places: Mapping[int, Place]) -> dict[int, NodeRun]:
        """Those executions that have a place, by id. Only here are unfinished ones recognised as killed."""
        records = {e.id: node_run(e, places[e.id].node) for e in executions if e.id in places}
        gone = [n for n, record in records.items() if record.state in UNFINISHED and self._is_gone(places[n])]
        # Read again: what was running when first read may have ended before its lock was tried.
        for execution in self._store.get_executions_by_id(gone) if gone else []:
            record = node_run(execution, places[execution.id].node)
            killed = record.state in UNFINISHED
            records[execution.id] = replace(record, state=KILLED) if killed else record
        return records

    def _runs_of(self, pipeline: str, node: str, executions: Iterable[mlmd_pb2.Execution]) -> list[NodeRun]:
        places = {e.id: Place(pipeline, self._run_of_unfinished(e), node) for e in executions}
        return sorted(self._node_runs(executions, places).values(), key=lambda record: -record.id)

    def _is_gone(self, place: Place) -> bool:
        return place.run is not None and not self._goes_on(place.pipeline, place.run, place.node)

    def _run_of_unfinished(self, execution: mlmd_pb2.Execution) -> str | None:
        state = mlmd_pb2.Execution.State.Name(execution.last_known_state)
        return self.run_of(execution.id) if state in UNFINISHED else None

    def _record(self, artifact: mlmd_pb2.Artifact) -> ArtifactRecord:
        return artifact_record(artifact, self.files)

    def _context(self, type_name: str, name: str) -> mlmd_pb2.Context | None:
        return self._store.get_context_by_type_and_name(type_name, name)

    def _runs_under(self, pipeline: str) -> list[mlmd_pb2.Context]:
        """The contexts of a pipeline's runs, newest first."""
        parent = self._context(PIPELINE_CONTEXT, pipeline)
        children = [] if parent is None else self._store.get_children_contexts_by_context(parent.id)
        runs = [context for context in children if context.type == RUN_CONTEXT]
        return sorted(runs, key=lambda context: -int(context.id))

    def _nodes_of(self, pipeline: str, executions: Iterable[int], num_runs: int) -> dict[int, str]:
        """The nodes of the executions of some runs of a pipeline, by id; others' are left out.

        Execution by execution, ML Metadata would look through the whole store for each. A node's own list is read from
        the newest of these executions down to the oldest, by as many as there are runs.
        """
        nodes: dict[int, str] = {}
        left = set(executions)
        for context in self._store.get_contexts_by_type(NODE_CONTEXT) if left else []:
            if not left:
                break
            if context.name.startswith(f"{pipeline}."):
                members = self._members(context.id, left, num_runs + 1)
                nodes |= dict.fromkeys(members, context.name.removeprefix(f"{pipeline}."))
                left -= members
        return nodes

    def _members(self, context: int, executions: Collection[int], at_once: int) -> set[int]:
        """Those of some executions that are a context's; read a page at a time, without what lies between them."""
        request = GetExecutionsByContextRequest(context_id=context)
        members: set[int] = set()
        newest: int | None = max(executions)
        while newest is not None:
            page = paging.newest(self._store, request, at_once, before=newest + 1)
            members |= {execution.id for execution in page} & set(executions)
            full = len(page) == at_once
            newest = max((number for number in executions if number < page[-1].id), default=None) if full else None
        return members

    def _artifacts(self, execution_id: int, event_types: set[int]) -> dict[str, list[ArtifactRecord]]:
        events = [e for e in self._store.get_events_by_execution_ids([execution_id]) if e.type in event_types]
        artifacts = {a.id: a for a in self._store.get_artifacts_by_id([event.artifact_id for event in events])}
        by_name: dict[str, list[ArtifactRecord]] = {}
        for event in events:
            if event.artifact_id in artifacts:
                by_name.setdefault(event.path.steps[0].key, []).append(self._record(artifacts[event.artifact_id]))
        return by_name
