"""The list of runs, and what is deployed."""

from __future__ import annotations

from typing import Any

from metadata.dashboard.contents import metrics_of
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, BadRequestError, Page
from metadata.queries import PAGE, Queries
from metadata.records import RunRecord
from metadata.values import STATES, run_values

STATE_FILTERS = ("done", "running", "failed", "stopped", "killed")
PAGES_SEARCHED = 2
SEARCHED_AT_ONCE = 100
"""Runs; MLMD does not filter runs by the state of their nodes, and a page must not read them all."""


def page(store: Queries, ask: Ask) -> Page:
    """A page of runs, newest first."""
    recipe, state, before = ask.one("recipe"), ask.one("state"), ask.number("before")
    if state is not None and state not in STATE_FILTERS:
        raise BadRequestError(f"state is one of {', '.join(STATE_FILTERS)}; received {state!r}.")
    found, older = select(store, recipe, state, before)
    deployed = store.deployed()
    served = {(d.made.pipeline, d.version) for d in deployed if d.made}
    metrics = _metrics(store, found)
    rows: list[dict[str, Any]] = [
        {
            "run": run,
            "values": run_values(run),
            "deployed": (run.pipeline, run.pushed_version) in served,
            "metrics": metrics.get(run.id, {}),
        }
        for run in found
    ]
    names = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
    return Page(
        "runs.html",
        "Runs",
        lambda: {
            "rows": rows,
            "metric_names": names,
            "deployed": deployed,
            "recipes": store.pipelines(),
            "recipe": recipe,
            "state": state,
            "before": before,
            "states": STATE_FILTERS,
            "older": older and URLS.runs(recipe=recipe, state=state, before=older),
            "goes_on": any(run.goes_on for run in found),
        },
        [row["values"] | {"deployed": row["deployed"], "metrics": row["metrics"]} for row in rows],
        section="Runs",
        live=True,
    )


def select(
    store: Queries, recipe: str | None, state: str | None, before: int | None
) -> tuple[list[RunRecord], int | None]:
    """A page of runs, and before which number to go on; None where there are no more.

    A search by state ends after so many runs, whatever it found, and can be gone on with.
    """
    if state is None:
        found = store.runs(recipe, limit=PAGE + 1, before=before)
        return found[:PAGE], found[PAGE - 1].number if len(found) > PAGE else None
    matching: list[RunRecord] = []
    for _ in range(PAGES_SEARCHED):
        seen = store.runs(recipe, limit=SEARCHED_AT_ONCE, before=before)
        matching += [run for run in seen if STATES[run.state] == state or (state, run.state) == ("running", "NEW")]
        if len(matching) >= PAGE:
            more = len(matching) > PAGE or len(seen) == SEARCHED_AT_ONCE
            return matching[:PAGE], matching[PAGE - 1].number if more else None
        if len(seen) < SEARCHED_AT_ONCE:
            return matching, None
        before = seen[-1].number
    return matching, before


def _metrics(store: Queries, found: list[RunRecord]) -> dict[str, dict[str, float | None]]:
    """The Evaluator's values by run and metric; of those runs whose files are there."""
    evaluators = {n.id: run.id for run in found for n in run.nodes if n.node == "Evaluator" and n.succeeded}
    metrics = {}
    for execution, outputs in store.outputs_of(evaluators).items():
        for artifact in outputs.get("evaluation", []):
            metrics[evaluators[execution]] = metrics_of(artifact.uri)
    return metrics
