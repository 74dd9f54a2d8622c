"""Finds runs by how they ended: ML Metadata filters node runs by state, and only runs that may match are read whole."""

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
"""What one can search for, and the run states that match."""

SEARCHED_AT_ONCE = 100
MOST_SEARCHED = 1_000
"""Runs; a search stops after this many, whether or not any matched, and can be continued."""

MOST_READ = 100
"""Runs that a search reads whole at most, because nothing less shows whether they match."""

NODES_OF = {
    "running": "last_known_state IN (NEW, RUNNING)",
    "failed": "last_known_state = FAILED",
    "stopped": "last_known_state = CANCELED",
    "killed": "last_known_state IN (NEW, RUNNING)",
}
"""Filters for node runs; a run of that kind has a node run that matches, or no node runs at all."""

FIRST_NODE = "contexts_n.type = 'node' AND contexts_n.name LIKE '%.ExampleGen'"
"""Shows in one query which runs have nodes at all."""

Contexts = Sequence[mlmd_pb2.Context]


def find_runs(
    store: Queries, kind: str | None = None, pipeline: str | None = None, before: int | None = None
) -> tuple[list[RunRecord], int | None]:
    """A page of runs, newest first, and the number before which the next page begins; None if there are no more.

    Args:
        store: The metadata store.
        kind: Only those of this kind, a key of `KINDS`.
        pipeline: Only those of this pipeline.
        before: Only those with a lower number.
    """
    if kind is None:
        newest = store.runs(pipeline, limit=PAGE + 1, before=before)
        return newest[:PAGE], newest[PAGE - 1].number if len(newest) > PAGE else None
    matching: list[RunRecord] = []
    num_read = 0
    for _ in range(MOST_SEARCHED // SEARCHED_AT_ONCE):
        contexts = store.run_contexts(pipeline, limit=SEARCHED_AT_ONCE, before=before)
        candidates = _candidates(store, kind, contexts)
        for start in range(0, len(candidates), PAGE + 1):
            batch = candidates[start : start + PAGE + 1]
            matching += [run for run in store.run_records(batch) if run.state in KINDS[kind]]
            num_read += len(batch)
            if len(matching) > PAGE:
                return matching[:PAGE], matching[PAGE - 1].number
            if num_read >= MOST_READ:
                return matching, batch[-1].id
        if len(contexts) < SEARCHED_AT_ONCE:
            return matching, None
        before = contexts[-1].id
    return matching, before


def _candidates(store: Queries, kind: str, contexts: Contexts) -> Contexts:
    """Those that may be of a kind: a node that failed may have run again, which only the whole run shows."""
    if kind not in NODES_OF:
        return contexts
    matching = store.runs_with(contexts, NODES_OF[kind])
    if kind in {"failed", "stopped"}:
        return [context for context in contexts if context.name in matching]
    # A run without nodes yet matches no filter for node runs.
    with_nodes = store.runs_with(contexts, FIRST_NODE)
    return [context for context in contexts if context.name in matching or context.name not in with_nodes]
