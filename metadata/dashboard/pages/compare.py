"""The runs of a recipe beside each other: settings that differ, and metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

from metadata.dashboard.contents import metrics_of
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.pages.charts import Number, Parallel, Point, Scatter
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.values import STATES, fingerprint_of, run_values

MOST_RUNS = 50
SECONDS = "seconds"
ROWS = "rows of examples"
MOST_AXES = 12
LONGEST = 60

Value = str | int | float | None


@dataclass(frozen=True)
class Row:
    """A run in the comparison.

    Attributes:
        run: The run.
        settings: Its nodes' settings, by dotted key.
        results: Its metrics, its rows of examples and its duration in seconds.
        chosen: Whether it is in the charts.
    """

    run: RunRecord
    settings: dict[str, Value]
    results: dict[str, Number]
    chosen: bool


def page(store: Queries, ask: Ask) -> Page:
    """The page of the comparison."""
    pipelines = store.pipelines()
    recipe = ask.one("recipe") or _latest(store)
    if recipe is not None and recipe not in pipelines:
        near = [(name, URLS.compare(recipe=name)) for name in pipelines]
        raise NotFoundError(f"No recipe {recipe} ever ran.", near)
    before = ask.number("before")
    wanted = ask.all("runs")
    found = store.runs(recipe, MOST_RUNS + 1, before) if recipe else []
    rows = _rows(store, found[:MOST_RUNS], wanted)
    chosen = [row for row in rows if row.chosen]
    settings = differing([row.settings for row in chosen])
    results = list(dict.fromkeys(name for row in chosen for name in row.results))
    older = found[MOST_RUNS - 1].number if len(found) > MOST_RUNS else None
    missing = [run_id for run_id in wanted if run_id not in {row.run.id for row in rows}]
    return Page(
        "compare.html",
        f"Runs of {recipe}" if recipe else "Runs beside each other",
        lambda: {
            "recipe": recipe,
            "recipes": pipelines,
            "rows": rows,
            "chosen": chosen,
            "missing": missing,
            "settings": settings,
            "results": results,
            "scatter": scatter(chosen, settings, results),
            "parallel": parallel(chosen, settings, results),
            "states": STATES,
            "before": before,
            "older": older and URLS.compare(recipe=recipe, before=older),
            "pair": URLS.difference(chosen[1].run.id, chosen[0].run.id) if len(chosen) == 2 else "",
        },
        [
            run_values(row.run) | {"settings": {name: row.settings.get(name) for name in settings}} | row.results
            for row in chosen
        ],
        section="Compare",
    )


def _latest(store: Queries) -> str | None:
    return next((run.pipeline for run in store.runs(limit=1)), None)


def _rows(store: Queries, runs: list[RunRecord], wanted: list[str]) -> list[Row]:
    outputs = store.outputs_of(
        node.id for run in runs for node in run.nodes if node.succeeded and node.node in {"Evaluator", "ExampleGen"}
    )
    rows = []
    for run in runs:
        results: dict[str, Number] = {}
        for node in run.nodes:
            named = outputs.get(node.id, {})
            for artifact in islice(named.get("evaluation", []), 1):
                results |= metrics_of(artifact)
            for artifact in islice(named.get("examples", []), 1):
                if "num_rows" in artifact.properties:
                    results[ROWS] = artifact.properties["num_rows"]
        if run.ended is not None:
            results[SECONDS] = (run.ended - run.started) / 1000
        rows.append(Row(run, _settings(run), results, not wanted or run.id in wanted))
    return rows


def _settings(run: RunRecord) -> dict[str, Value]:
    made_with = [fingerprint_of(node) for node in run.nodes]
    return {key: _value(value) for made in made_with if made is not None for key, value in made.settings.items()}


def _value(value: Any) -> Value:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def differing(rows: list[dict[str, Value]]) -> list[str]:
    """The settings that not all runs that have them have alike, sorted; nodes that never began have none."""
    seen: dict[str, set[Value]] = {}
    for row in rows:
        for name, value in row.items():
            seen.setdefault(name, set()).add(value)
    return sorted(name for name, values in seen.items() if len(values) > 1)


def _points(rows: list[Row], dimensions: list[str]) -> list[Point]:
    return [
        Point(
            label=row.run.id,
            values={name: row.settings.get(name, row.results.get(name)) for name in dimensions},
            href=URLS.run(row.run.id),
            group=STATES[row.run.state],
        )
        for row in rows
    ]


def scatter(rows: list[Row], settings: list[str], results: list[str]) -> Scatter | None:
    """The runs over a setting that differs and the first metric; None where there is too little to draw."""
    dimensions = [*settings, *results]
    metrics = [name for name in results if name not in {SECONDS, ROWS}]
    if len(rows) < 2 or not results:
        return None
    y = next(iter(metrics), results[-1])
    numbers = [name for name in settings if all(_is_number(row.settings.get(name)) for row in rows)]
    # What was varied most says most.
    numbers.sort(key=lambda name: -len({row.settings.get(name) for row in rows}))
    x = next((name for name in [*numbers, SECONDS, *dimensions] if name != y and name in dimensions), y)
    return Scatter("Runs over two settings or results", _points(rows, dimensions), dimensions, x, y)


def _is_number(value: Value) -> bool:
    return value is None or isinstance(value, int | float)


def parallel(rows: list[Row], settings: list[str], results: list[str]) -> Parallel | None:
    """The runs as lines over settings that differ and results; None where there is too little to draw."""
    metrics = [name for name in results if name not in {SECONDS, ROWS}]
    dimensions = [*settings[: MOST_AXES - len(metrics)], *metrics]
    if len(rows) < 2 or len(dimensions) < 2:
        return None
    return Parallel("Settings that differ, and metrics", _points(rows, dimensions), dimensions)
