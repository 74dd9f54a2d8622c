"""Looks up ids from addresses, and searches by part of an id; unknown ids get the nearest existing ones."""

from __future__ import annotations

from contracts.near_names import near_names
from metadata.queries import PAGE, Queries
from metadata.records import MadeArtifact, NodeRun, RunRecord
from ui.dashboard.page import MOST, Ask, Moved, NotFoundError, Page
from ui.links import URLS
from ui.parts import Bullets, Section, Text
from ui.texts import count, link

MOST_NEAR = 3


def run_of(store: Queries, run_id: str) -> RunRecord:
    """The run with an id.

    Raises:
        NotFoundError: There is none.
    """
    run = store.run(run_id)
    if run is None:
        raise NotFoundError(f"There is no run {run_id}.", near_runs(store, run_id))
    return run


def near_runs(store: Queries, run_id: str) -> list[tuple[str, str]]:
    """The runs with the nearest ids, or else the latest run, each with its address."""
    run_ids = store.all_run_ids()
    near = near_names(run_id, run_ids, most=MOST_NEAR, cutoff=0.5) or run_ids[:1]
    return [(name, URLS.run(name)) for name in near]


def node_of(run: RunRecord, node: str) -> NodeRun:
    """The node run of a run.

    Raises:
        NotFoundError: There is none.
    """
    node_run = next((record for record in run.nodes if record.node == node), None)
    if node_run is None:
        near = [(record.node, URLS.node(run.id, record.node)) for record in run.nodes]
        raise NotFoundError(f"The run {run.id} has not run a node {node}.", near)
    return node_run


def artifact_of(store: Queries, number: str) -> MadeArtifact:
    """The artifact with an id.

    Raises:
        NotFoundError: There is none.
    """
    is_id = number.isdecimal() and number.isascii() and int(number) <= MOST
    artifacts = store.artifacts_by_id([int(number)]) if is_id else []
    if not artifacts:
        newest = store.artifacts(limit=1)
        near = [(f"{a.artifact.type} {a.artifact.id}", URLS.artifact(a.artifact.id)) for a in newest]
        raise NotFoundError(f"There is no artifact {number}.", near)
    return artifacts[0]


def search_page(store: Queries, ask: Ask) -> Page | Moved:
    """Redirects to what an id names; a list of results if there are several."""
    wanted = (ask.value("q") or "").strip()
    if not wanted:
        return Moved(URLS.runs())
    if wanted.isdecimal() and wanted.isascii() and int(wanted) <= MOST and store.artifacts_by_id([int(wanted)]):
        return Moved(URLS.artifact(int(wanted)))
    run_ids = store.all_run_ids()
    if wanted in run_ids:
        return Moved(URLS.run(wanted))
    matching = [run_id for run_id in run_ids if wanted.lower() in run_id.lower()]
    types = [name for name in store.artifact_types() if wanted.lower() in name.lower()]
    if len(matching) == 1 and not types:
        return Moved(URLS.run(matching[0]))
    if not matching and not types:
        raise NotFoundError(
            f"There is no run or artifact {wanted}, and no type of artifacts.", near_runs(store, wanted)
        )
    kinds = [link(f"Artifacts of type {name}", URLS.artifacts(type=name)) for name in types]
    runs = [link(run_id, URLS.run(run_id)) for run_id in matching[:PAGE]]
    more = Text(f"And {count(len(matching) - PAGE, 'other run')}.", "dim") if len(matching) > PAGE else None
    return Page(
        f"Found for {wanted}",
        lambda: [Section("found", "What was found", [Bullets([*kinds, *runs]), more], heading=False)],
        {"runs": matching, "types": types},
    )
