"""Finds runs by how they ended: their node runs' states are read first, and only runs that may match are read whole."""

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
MOST_SEARCHED = 400
"""Runs; a search stops after this many, whether or not any matched, and can be continued."""

MOST_READ = 100
"""Runs that a search reads whole at most, because nothing less shows whether they match."""

NODES_OF = {"running": UNFINISHED, "failed": KINDS["failed"], "stopped": KINDS["stopped"], "killed": UNFINISHED}
"""States of node runs, as ML Metadata records them; a run of that kind has one of them, or no node runs at all."""

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
    states = {context.id: store.states_in(context) for context in contexts}
    may_be_empty = kind in {"running", "killed"}
    return [c for c in contexts if states[c.id] & NODES_OF[kind] or (may_be_empty and not states[c.id])]
