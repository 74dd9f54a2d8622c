"""What an id in an address means; what is unknown names the nearest that there is."""

from __future__ import annotations

import difflib

from metadata.dashboard.links import URLS
from metadata.dashboard.page import MOST, NotFoundError
from metadata.queries import Queries
from metadata.records import MadeArtifact, NodeRun, RunRecord

MOST_NEAR = 3


def run_of(store: Queries, run_id: str) -> RunRecord:
    """The run of an id.

    Raises:
        NotFoundError: There is none.
    """
    run = store.run(run_id)
    if run is None:
        raise NotFoundError(f"There is no run {run_id}.", near_runs(store, run_id))
    return run


def near_runs(store: Queries, run_id: str) -> list[tuple[str, str]]:
    """The runs whose ids are nearest, or the latest one, each with its address."""
    known = store.all_run_ids()
    near = difflib.get_close_matches(run_id, known, n=MOST_NEAR, cutoff=0.5) or known[:1]
    return [(name, URLS.run(name)) for name in near]


def node_of(run: RunRecord, node: str) -> NodeRun:
    """The node run of a run.

    Raises:
        NotFoundError: There is none.
    """
    found = next((known for known in run.nodes if known.node == node), None)
    if found is None:
        near = [(known.node, URLS.node(run.id, known.node)) for known in run.nodes]
        raise NotFoundError(f"The run {run.id} has not run a node {node}.", near)
    return found


def artifact_of(store: Queries, number: str) -> MadeArtifact:
    """The artifact of an id.

    Raises:
        NotFoundError: There is none.
    """
    known = number.isdecimal() and number.isascii() and int(number) <= MOST
    found = store.artifacts_by_id([int(number)]) if known else []
    if not found:
        newest = store.artifacts(limit=1)
        near = [(f"{a.artifact.type} {a.artifact.id}", URLS.artifact(a.artifact.id)) for a in newest]
        raise NotFoundError(f"There is no artifact {number}.", near)
    return found[0]
