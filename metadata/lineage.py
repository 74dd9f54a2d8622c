"""What an artifact was made from, and what was made from it: a graph of artifacts and node runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata.queries import INPUTS, OUTPUTS, Queries
from metadata.records import ArtifactRecord, NodeRun, Place

MOST_ARTIFACTS = 500
"""The default size limit of a walk: nearly everything in the store may descend from one schema."""

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Step:
    """A node run with its input and output artifacts.

    Attributes:
        node_run: The execution.
        place: The pipeline, run and node it belongs to.
        inputs: Ids of the input artifacts by input name.
        outputs: Ids of the output artifacts by output name.
    """

    node_run: NodeRun
    place: Place
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Lineage:
    """A part of the lineage graph.

    Attributes:
        start: The id of the artifact that was asked for.
        direction: `up` to what it was made from, `down` to what was made from it.
        artifacts: By id.
        steps: By execution id.
        producers: The id of the step that made an artifact, by artifact id.
        whole: Whether the walk reached its end.
    """

    start: int
    direction: Direction
    artifacts: dict[int, ArtifactRecord]
    steps: dict[int, Step]
    producers: dict[int, int]
    whole: bool

    def steps_next_to(self, artifact: int) -> list[Step]:
        """Going up, the step that made an artifact; going down, the steps that used it, oldest first."""
        if self.direction == "up":
            return [self.steps[self.producers[artifact]]] if artifact in self.producers else []
        return [
            step
            for _id, step in sorted(self.steps.items())
            if any(artifact in artifacts for artifacts in step.inputs.values())
        ]


def trace(store: Queries, artifact: int, direction: Direction = "up", limit: int = MOST_ARTIFACTS) -> Lineage | None:
    """The lineage of an artifact, or None where there is no such artifact.

    The first run to output an artifact counts as its producer. Cached runs, which output it again, are not steps: they
    made nothing.

    Args:
        store: The store.
        artifact: The artifact's id.
        direction: `up` or `down`.
        limit: The walk stops after the level that brings the total above this many artifacts.
    """
    if not store.artifacts_by_id([artifact]):
        return None
    walk = _Walk(store)
    frontier, seen = {artifact}, {artifact}
    while frontier and len(seen) <= limit:
        reached = walk.up(frontier) if direction == "up" else walk.down(frontier)
        frontier = reached - seen
        seen |= frontier
    artifacts = {entry.artifact.id: entry.artifact for entry in store.artifacts_by_id(seen)}
    return Lineage(artifact, direction, artifacts, walk.steps(), walk.producers, whole=not frontier)


class _Walk:
    """Takes two queries per level, however wide the level is."""

    def __init__(self, store: Queries) -> None:
        self._queries = store
        self._events: dict[int, list[mlmd_pb2.Event]] = {}
        self.producers: dict[int, int] = {}

    def up(self, artifacts: Iterable[int]) -> set[int]:
        """What these artifacts were made from."""
        producers = self._queries.producers(artifacts)
        self.producers |= producers
        return {
            int(event.artifact_id)
            for events in self._add(producers.values()).values()
            for event in events
            if event.type in INPUTS
        }

    def down(self, artifacts: Iterable[int]) -> set[int]:
        """What was made from these artifacts."""
        consumers = self._queries.consumers(artifacts)
        outputs = {
            int(event.artifact_id): int(event.execution_id)
            for events in self._add(consumers).values()
            for event in events
            if event.type in OUTPUTS
        }
        self.producers |= outputs
        return set(outputs)

    def steps(self) -> dict[int, Step]:
        """Every execution visited."""
        runs = self._queries.node_runs_by_id(self._events)
        return {
            execution: Step(*runs[execution], _by_name(events, INPUTS), _by_name(events, OUTPUTS))
            for execution, events in sorted(self._events.items())
            if execution in runs
        }

    def _add(self, executions: Iterable[int]) -> dict[int, list[mlmd_pb2.Event]]:
        new = sorted(set(executions) - self._events.keys())
        events = self._queries.events_of(new)
        self._events |= events
        return events


def _by_name(events: Iterable[mlmd_pb2.Event], types: frozenset[int]) -> dict[str, tuple[int, ...]]:
    by_name: dict[str, tuple[int, ...]] = {}
    for event in events:
        if event.type in types:
            name = event.path.steps[0].key
            by_name[name] = (*by_name.get(name, ()), int(event.artifact_id))
    return by_name
