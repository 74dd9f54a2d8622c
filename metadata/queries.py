"""Pages of runs and artifacts, and what is deployed, each in a bounded number of queries.

They go through ML Metadata's own API, which works alike on SQLite, MySQL and PostgreSQL and needs no other driver, and
without filter queries, which ML Metadata 1.21 no longer knows. A page asks a query or two for each of its rows, never
for every row of the store; `python -m benchmarks.inspect_store` measures it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from ml_metadata.proto import metadata_store_service_pb2 as service_pb2

from metadata import paging
from metadata.records import (
    ArtifactRecord,
    Deployment,
    MadeArtifact,
    NodeRun,
    Place,
    RunRecord,
)
from metadata.store import NODE_CONTEXT, PIPELINE_CONTEXT, RUN_CONTEXT, Store

PAGE = 25
PUSHED_MODEL = "PushedModel"

INPUTS = frozenset({mlmd_pb2.Event.INPUT, mlmd_pb2.Event.DECLARED_INPUT})
OUTPUTS = frozenset({mlmd_pb2.Event.OUTPUT, mlmd_pb2.Event.DECLARED_OUTPUT})


class Queries(Store):
    """A metadata store opened for reading, which returns whole pages."""

    def all_run_ids(self) -> list[str]:
        """The ids of all runs of all pipelines, newest first."""
        runs = self._store.get_contexts_by_type(RUN_CONTEXT)
        return [context.name for context in sorted(runs, key=lambda context: -int(context.id))]

    def pipelines(self) -> list[str]:
        """The names of the pipelines that ever ran, sorted."""
        return sorted(str(context.name) for context in self._store.get_contexts_by_type(PIPELINE_CONTEXT))

    def runs(self, pipeline: str | None = None, limit: int = PAGE, before: int | None = None) -> list[RunRecord]:
        """A page of runs, newest first.

        Args:
            pipeline: Only those of this pipeline.
            limit: How many at most.
            before: Only those with a lower `number`, that of the last run on the previous page.
        """
        return self.run_records(self.run_contexts(pipeline, limit, before))

    def run_contexts(self, pipeline: str | None, limit: int, before: int | None) -> list[mlmd_pb2.Context]:
        """A page of runs as ML Metadata's contexts, without their nodes; the arguments are those of `runs`."""
        if pipeline is None:
            request = service_pb2.GetContextsByTypeRequest(type_name=RUN_CONTEXT)
            return paging.newest(self._store, request, limit, before)
        runs = self._runs_under(pipeline)
        return [context for context in runs if before is None or context.id < before][:limit]

    def states_in(self, run: mlmd_pb2.Context) -> set[str]:
        """The states of a run's node runs as ML Metadata records them, those that were repeated included."""
        executions = self._store.get_executions_by_context(run.id)
        return {mlmd_pb2.Execution.State.Name(execution.last_known_state) for execution in executions}

    def run(self, run_id: str) -> RunRecord | None:
        """A run by its id, or None."""
        context = self._context(RUN_CONTEXT, run_id)
        return None if context is None else self.run_records([context])[0]

    def artifact_types(self) -> list[str]:
        """The names of the artifact types in the store, sorted, without ML Metadata's own base types."""
        names = (artifact_type.name for artifact_type in self._store.get_artifact_types())
        return sorted(name for name in names if not name.startswith("mlmd."))

    def artifacts(
        self, type_name: str | None = None, limit: int = PAGE, before: int | None = None
    ) -> list[MadeArtifact]:
        """A page of artifacts, newest first.

        Args:
            type_name: Only those of this type.
            limit: How many at most.
            before: Only those with a lower id.
        """
        by_type = service_pb2.GetArtifactsByTypeRequest(type_name=type_name)
        request = service_pb2.GetArtifactsRequest() if type_name is None else by_type
        return self._made([self._record(artifact) for artifact in paging.newest(self._store, request, limit, before)])

    def artifacts_by_id(self, ids: Iterable[int]) -> list[MadeArtifact]:
        """Those artifacts that exist among these ids, sorted by id."""
        artifacts = self._store.get_artifacts_by_id(sorted(set(ids)))
        return self._made(sorted(map(self._record, artifacts), key=lambda artifact: artifact.id))

    def artifacts_at(self, location: str) -> list[MadeArtifact]:
        """The artifacts that are stored in a folder or were pushed to it, newest first."""
        by_id = {artifact.id: self._record(artifact) for artifact in self._store.get_artifacts_by_uri(location)}
        by_id |= {a.id: a for a in self.pushed() if a.properties["pushed_destination"] == location}
        return self._made([by_id[number] for number in sorted(by_id, reverse=True)])

    def deployed(self) -> list[Deployment]:
        """What each serving folder serves, by folder: the highest version that was pushed or rolled back to."""
        newest: dict[str, ArtifactRecord] = {}
        for artifact in self.pushed():
            folder = str(PurePath(artifact.properties["pushed_destination"]).parent)
            if folder not in newest or _version(newest[folder]) < _version(artifact):
                newest[folder] = artifact
        places = {entry.artifact.id: entry.place for entry in self._made(list(newest.values()))}
        return [_deployment(folder, pushed, places[pushed.id]) for folder, pushed in sorted(newest.items())]

    def pushed(self) -> list[ArtifactRecord]:
        """Every version that was ever pushed, newest first."""
        artifacts = [self._record(artifact) for artifact in self._store.get_artifacts_by_type(PUSHED_MODEL)]
        pushed = [artifact for artifact in artifacts if artifact.properties.get("pushed") == 1]
        return sorted(pushed, key=lambda artifact: -artifact.id)

    def outputs_of(self, executions: Iterable[int]) -> dict[int, dict[str, list[ArtifactRecord]]]:
        """The output artifacts of several executions, by execution and output name."""
        events = [e for of_execution in self.events_of(executions).values() for e in of_execution if e.type in OUTPUTS]
        ids = {event.artifact_id for event in events}
        artifacts = {a.id: self._record(a) for a in self._store.get_artifacts_by_id(ids)} if ids else {}
        named: dict[int, dict[str, list[ArtifactRecord]]] = {}
        for event in events:
            if event.artifact_id in artifacts:
                by_name = named.setdefault(event.execution_id, {})
                by_name.setdefault(event.path.steps[0].key, []).append(artifacts[event.artifact_id])
        return named

    def node_runs_by_id(self, executions: Iterable[int]) -> dict[int, tuple[NodeRun, Place]]:
        """Node runs by execution id, each with the pipeline, run and node it belongs to."""
        ids = sorted(set(executions))
        places = self._places(ids)
        records = self._store.get_executions_by_id(ids) if ids else []
        return {number: (record, places[number]) for number, record in self._node_runs(records, places).items()}

    def producers(self, artifacts: Iterable[int]) -> dict[int, int]:
        """The ids of the executions that first output these artifacts, by artifact id."""
        first: dict[int, int] = {}
        ids = sorted(set(artifacts))
        for event in self._store.get_events_by_artifact_ids(ids) if ids else []:
            if event.type in OUTPUTS:
                execution = int(event.execution_id)
                first[event.artifact_id] = min(first.get(event.artifact_id, execution), execution)
        return first

    def consumers(self, artifacts: Iterable[int]) -> set[int]:
        """The ids of the executions that used one of these artifacts; cached ones did not."""
        ids = sorted(set(artifacts))
        events = self._store.get_events_by_artifact_ids(ids) if ids else []
        executions = {int(event.execution_id) for event in events if event.type in INPUTS}
        taking = self._store.get_executions_by_id(executions) if executions else []
        return {int(e.id) for e in taking if e.last_known_state != mlmd_pb2.Execution.CACHED}

    def events_of(self, executions: Iterable[int]) -> dict[int, list[mlmd_pb2.Event]]:
        """The input and output events of executions, by execution."""
        ids = sorted(set(executions))
        events: dict[int, list[mlmd_pb2.Event]] = {execution: [] for execution in ids}
        for event in self._store.get_events_by_execution_ids(ids) if ids else []:
            if event.type in INPUTS | OUTPUTS:
                events[event.execution_id].append(event)
        return events

    def run_records(self, contexts: Sequence[mlmd_pb2.Context]) -> list[RunRecord]:
        """The runs of these contexts with their nodes, in the same order."""
        executions = {context.id: self._store.get_executions_by_context(context.id) for context in contexts}
        pipelines = {context.id: self._pipeline_of(context) for context in contexts}
        nodes: dict[int, str] = {}
        for pipeline in set(pipelines.values()):
            of_pipeline = [context.id for context in contexts if pipelines[context.id] == pipeline]
            ids = [execution.id for run in of_pipeline for execution in executions[run]]
            nodes |= self._nodes_of(pipeline, ids, len(of_pipeline))
        by_run: dict[str, dict[str, NodeRun]] = {}
        for context in contexts:
            of_run = [execution for execution in executions[context.id] if execution.id in nodes]
            places = {e.id: Place(pipelines[context.id], context.name, nodes[e.id]) for e in of_run}
            by_run[context.name] = self._last_of_each_node(of_run, places)
        pushed = self._pushed_versions(by_run)
        return [self._run(context, pipelines[context.id], by_run[context.name], pushed) for context in contexts]

    def _last_of_each_node(
        self, executions: Sequence[mlmd_pb2.Execution], places: Mapping[int, Place]
    ) -> dict[str, NodeRun]:
        """A run's node runs by node; one that ran again is listed where its last run began."""
        by_node: dict[str, NodeRun] = {}
        for _id, record in sorted(self._node_runs(executions, places).items()):
            by_node.pop(record.node, None)
            by_node[record.node] = record
        return by_node

    def _run(
        self, context: mlmd_pb2.Context, pipeline: str, nodes: dict[str, NodeRun], pushed: dict[str, str]
    ) -> RunRecord:
        gone = not nodes and not self._goes_on(pipeline, context.name, None)
        return RunRecord(
            number=context.id,
            id=context.name,
            pipeline=pipeline,
            started=context.create_time_since_epoch,
            nodes=tuple(nodes.values()),
            pushed_version=pushed.get(context.name),
            # Read again: it may have begun and ended before its lock was tried.
            killed=gone and not self._store.get_executions_by_context(context.id),
        )

    def _pipeline_of(self, run: mlmd_pb2.Context) -> str:
        parents = self._store.get_parent_contexts_by_context(run.id)
        return next((str(parent.name) for parent in parents if parent.type == PIPELINE_CONTEXT), "")

    def _pushed_versions(self, nodes: dict[str, dict[str, NodeRun]]) -> dict[str, str]:
        pushers = {by_node["Pusher"].id: run for run, by_node in nodes.items() if "Pusher" in by_node}
        versions: dict[str, str] = {}
        for execution, outputs in self.outputs_of(pushers).items():
            for artifact in (a for artifacts in outputs.values() for a in artifacts):
                if artifact.properties.get("pushed"):
                    versions[pushers[execution]] = str(artifact.properties["pushed_version"])
        return versions

    def _made(self, artifacts: Sequence[ArtifactRecord]) -> list[MadeArtifact]:
        producers = self.producers(artifact.id for artifact in artifacts)
        places = self._places(sorted(set(producers.values())))
        return [
            MadeArtifact(artifact, execution, places.get(execution) if execution is not None else None)
            for artifact in artifacts
            for execution in [producers.get(artifact.id)]
        ]

    def _places(self, executions: Iterable[int]) -> dict[int, Place]:
        """The places of executions, by id, those without a node left out; they never change."""
        for execution in executions:
            if execution not in self._known_places:
                contexts = self._store.get_contexts_by_execution(execution)
                names = {context.type: context.name for context in contexts}
                self._known_places[execution] = _place(names) if NODE_CONTEXT in names else None
        places = {execution: self._known_places[execution] for execution in executions}
        return {execution: place for execution, place in places.items() if place is not None}


def _place(names: dict[str, str]) -> Place:
    pipeline, _, node = names[NODE_CONTEXT].partition(".")
    return Place(names.get(PIPELINE_CONTEXT, pipeline), names.get(RUN_CONTEXT), node)


def _version(pushed: ArtifactRecord) -> int:
    return int(pushed.properties["pushed_version"])


def _deployment(folder: str, pushed: ArtifactRecord, pushed_by: Place | None) -> Deployment:
    properties = pushed.properties
    restored = properties.get("restored_version")
    return Deployment(
        folder=folder,
        version=str(properties["pushed_version"]),
        pushed=pushed,
        pushed_by=pushed_by,
        model=properties.get("current_model_id"),
        restored=None if restored is None else str(restored),
    )
