"""A jump to a run or an artifact by its id, or a part of it."""

from __future__ import annotations

from metadata.dashboard import finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import MOST, Ask, Moved, NotFoundError, Page
from metadata.queries import PAGE, Queries


def page(store: Queries, ask: Ask) -> Page | Moved:
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
        raise NotFoundError(
            f"There is no run or artifact {asked}, and no type of artifacts.", finding.near_runs(store, asked)
        )
    near = [(run_id, URLS.run(run_id)) for run_id in meant[:PAGE]]
    kinds = [(name, URLS.artifacts(type=name)) for name in types]
    return Page(
        "found.html",
        f"Found for {asked}",
        lambda: {"near": near, "kinds": kinds, "more": max(len(meant) - PAGE, 0)},
        {"runs": meant, "types": types},
    )
