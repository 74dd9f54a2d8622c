"""The list of runs, and what is deployed."""

from __future__ import annotations

from typing import Any

from metadata import searching
from metadata.dashboard.contents import metrics_of
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, BadRequestError, Page
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.values import run_values


def page(store: Queries, ask: Ask) -> Page:
    """A page of runs, newest first."""
    recipe, state, before = ask.one("recipe"), ask.one("state"), ask.number("before")
    if state is not None and state not in searching.KINDS:
        raise BadRequestError(f"state is one of {', '.join(searching.KINDS)}; received {state!r}.")
    found, older = searching.runs(store, state, recipe, before)
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
            "states": tuple(searching.KINDS),
            "older": older and URLS.runs(recipe=recipe, state=state, before=older),
            "goes_on": any(run.goes_on for run in found),
        },
        [row["values"] | {"deployed": row["deployed"], "metrics": row["metrics"]} for row in rows],
        section="Runs",
        live=True,
    )


def _metrics(store: Queries, found: list[RunRecord]) -> dict[str, dict[str, float | None]]:
    """The Evaluator's values by run and metric; of those runs whose files are there."""
    evaluators = {n.id: run.id for run in found for n in run.nodes if n.node == "Evaluator" and n.succeeded}
    metrics = {}
    for execution, outputs in store.outputs_of(evaluators).items():
        for artifact in outputs.get("evaluation", []):
            metrics[evaluators[execution]] = metrics_of(artifact)
    return metrics
