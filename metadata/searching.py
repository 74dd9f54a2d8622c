"""Runs by what became of them: ML Metadata filters node runs by state, and only runs that may fit are read whole."""

from __future__ import annotations

from collections.abc import Sequence

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata.queries import PAGE, Queries
from metadata.records import KILLED, UNFINISHED, RunRecord

KINDS = {
    "done": frozenset({"COMPLETE"}),
    "running": UNFINISHED,
    "failed": frozenset({"FAILED"}),
    "stopped": frozenset({"CANCELED"}),
    "killed": frozenset({KILLED}),
}
"""What runs are searched by, and the states of those that are meant."""

SEARCHED_AT_ONCE = 100
MOST_SEARCHED = 1_000
"""Runs; a search stops after this many, whether or not it found any, and can be continued."""

MOST_READ = 100
"""Runs that a search reads whole, because nothing less shows whether they match."""

NODES_OF = {
    "running": "last_known_state IN (NEW, RUNNING)",
    "failed": "last_known_state = FAILED",
    "stopped": "last_known_state = CANCELED",
    "killed": "last_known_state IN (NEW, RUNNING)",
}
"""Filters for node runs of which a run of that kind has one, or none at all."""

FIRST_NODE = "contexts_n.type = 'node' AND contexts_n.name LIKE '%.ExampleGen'"
"""What shows in one query that runs have nodes at all."""

Contexts = Sequence[mlmd_pb2.Context]


def find_runs(
    store: Queries, kind: str | None = None, pipeline: str | None = None, before: int | None = None
) -> tuple[list[RunRecord], int | None]:
    """A page of runs, newest first, and before which number to go on; None where there are no more.

    Args:
        store: The metadata store.
        kind: Only those of this one of `KINDS`.
        pipeline: Only those of this pipeline.
        before: Only those with a lower number.
    """
    if kind is None:
        newest = store.runs(pipeline, limit=PAGE + 1, before=before)
        return newest[:PAGE], newest[PAGE - 1].number if len(newest) > PAGE else None
    matching: list[RunRecord] = []
    read = 0
    for _ in range(MOST_SEARCHED // SEARCHED_AT_ONCE):
        begun = store.begun(pipeline, limit=SEARCHED_AT_ONCE, before=before)
        candidates = _candidates(store, kind, begun)
        for start in range(0, len(candidates), PAGE + 1):
            several = candidates[start : start + PAGE + 1]
            matching += [run for run in store.read(several) if run.state in KINDS[kind]]
            read += len(several)
            if len(matching) > PAGE:
                return matching[:PAGE], matching[PAGE - 1].number
            if read >= MOST_READ:
                return matching, several[-1].id
        if len(begun) < SEARCHED_AT_ONCE:
            return matching, None
        before = begun[-1].id
    return matching, before


def _candidates(store: Queries, kind: str, begun: Contexts) -> Contexts:
    """Those that may be of a kind; a node that failed may have run again, and only the whole run tells."""
    if kind not in NODES_OF:
        return begun
    matching = store.runs_with(begun, NODES_OF[kind])
    if kind in {"failed", "stopped"}:
        return [context for context in begun if context.name in matching]
    # A run that has no nodes yet has none in any state.
    with_nodes = store.runs_with(begun, FIRST_NODE)
    return [context for context in begun if context.name in matching or context.name not in with_nodes]
