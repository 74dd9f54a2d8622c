"""What an id in an address means, and the search by a part of one; what is unknown names the nearest that there is."""

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
    near = near_names(run_id, known, most=MOST_NEAR, cutoff=0.5) or known[:1]
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


def search_page(store: Queries, ask: Ask) -> Page | Moved:
    """What an id leads to; a list where it may mean several."""
    asked = (ask.one("q") or "").strip()
    if not asked:
        return Moved(URLS.runs())
    if asked.isdecimal() and asked.isascii() and int(asked) <= MOST and store.artifacts_by_id([int(asked)]):
        return Moved(URLS.artifact(int(asked)))
    known = store.all_run_ids()
    if asked in known:
        return Moved(URLS.run(asked))
    meant = [run_id for run_id in known if asked.lower() in run_id.lower()]
    types = [name for name in store.artifact_types() if asked.lower() in name.lower()]
    if len(meant) == 1 and not types:
        return Moved(URLS.run(meant[0]))
    if not meant and not types:
        raise NotFoundError(f"There is no run or artifact {asked}, and no type of artifacts.", near_runs(store, asked))
    kinds = [link(f"Artifacts of type {name}", URLS.artifacts(type=name)) for name in types]
    runs = [link(run_id, URLS.run(run_id)) for run_id in meant[:PAGE]]
    more = Text(f"And {count(len(meant) - PAGE, 'other run')}.", "dim") if len(meant) > PAGE else None
    return Page(
        f"Found for {asked}",
        lambda: [Section("found", "What was found", [Bullets([*kinds, *runs]), more], heading=False)],
        {"runs": meant, "types": types},
    )
