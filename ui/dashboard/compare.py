"""A comparison of a recipe's runs, and what differs between two."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from metadata import differences
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.values import STATES, fingerprint_of, run_values
from ui.charts import Number, Parallel, Point, Scatter
from ui.dashboard import search
from ui.dashboard.files import metrics_of
from ui.dashboard.page import Ask, NotFoundError, Page, paging, run_link
from ui.links import URLS
from ui.parts import Column, Filter, Form, Parts, Picker, Section, Table, Text
from ui.report import comparison
from ui.texts import Inline, line, link, number, plain, shortened, state

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


def compare_page(store: Queries, ask: Ask) -> Page:
    """The page of the comparison."""
    pipelines = store.pipelines()
    recipe = ask.value("recipe") or _latest(store)
    if recipe is not None and recipe not in pipelines:
        near = [(name, URLS.compare(recipe=name)) for name in pipelines]
        raise NotFoundError(f"No recipe {recipe} ever ran.", near)
    before = ask.number("before")
    wanted = ask.values("runs")
    runs = store.runs(recipe, MOST_RUNS + 1, before) if recipe else []
    rows = _rows(store, runs[:MOST_RUNS], wanted)
    chosen = [row for row in rows if row.chosen]
    settings = differing([row.settings for row in chosen])
    results = list(dict.fromkeys(name for row in chosen for name in row.results))
    older = runs[MOST_RUNS - 1].number if len(runs) > MOST_RUNS else None
    missing = [run_id for run_id in wanted if run_id not in {row.run.id for row in rows}]

    def show() -> Parts:
        if not recipe:
            return [Text("No run began yet.")]
        pair = URLS.difference(chosen[1].run.id, chosen[0].run.id) if len(chosen) == 2 else ""
        choice = [
            Filter("/compare", [Picker("recipe", "Recipe", pipelines, recipe, everything="")]),
            Text(f"Not on this page of runs: {', '.join(missing)}.", "warning") if missing else None,
            Text(link("What differs between these two, in full", pair)) if pair else None,
        ]
        charts = [parallel(chosen, settings, results), scatter(chosen, settings, results)]
        nothing = Text("There is nothing to draw: two runs with results are the least.")
        form = Form(
            "/compare",
            {"recipe": recipe, "before": before},
            [_table(rows, settings, results)],
            "Compare the checked runs",
            link("All of them", URLS.compare(recipe=recipe, before=before)),
        )
        older_page = URLS.compare(recipe=recipe, before=older) if older else None
        return [
            Section("choose", "What to compare", choice, heading=False),
            Section("charts", "Settings and results", charts) if any(charts) else nothing,
            Section("list", "Runs", [form, paging("runs", URLS.compare(recipe=recipe), older_page, before)]),
        ]

    return Page(
        f"Runs of {recipe}" if recipe else "Comparison of runs",
        show,
        [
            run_values(row.run) | {"settings": {name: row.settings.get(name) for name in settings}} | row.results
            for row in chosen
        ],
        section="Compare",
    )


def _table(rows: list[Row], settings: list[str], results: list[str]) -> Table:
    places = {row.run.id: place for place, row in enumerate(rows, start=1)}

    def name(row: Row) -> Inline:
        box = Markup('<input type="checkbox" name="runs" value="{0}" id="run-{1}"{2} aria-label="Compare {0}">')
        ticked = Markup(" checked") if row.chosen else ""
        run = row.run.id
        return line(
            Markup('<span class="pick">'), box.format(run, places[run], ticked), " ", run_link(run), Markup("</span>")
        )

    def result(name: str) -> Column:
        digits = 1 if name == SECONDS else 4
        return Column(name, lambda row: number(row.results[name], digits) if name in row.results else "", "number")

    def setting(name: str) -> Column:
        return Column(name, lambda row: plain(row.settings[name]) if name in row.settings else "")

    return Table(
        "runs with the settings that differ",
        rows,
        [
            Column("Run", name, "id"),
            Column("State", lambda row: state(STATES[row.run.state])),
            *map(result, results),
            *map(setting, settings),
        ],
        sortable=True,
        dim=lambda row: not row.chosen,
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
    return {
        key: _value(value)
        for fingerprint in made_with
        if fingerprint is not None
        for key, value in fingerprint.settings.items()
    }


def _value(value: Any) -> Value:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text, LONGEST)


def differing(rows: list[dict[str, Value]]) -> list[str]:
    """The settings that differ between the runs that have them, sorted; nodes that never began have none."""
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
    """The runs by a setting that differs and the first metric; None if there is too little to draw."""
    dimensions = [*settings, *results]
    metrics = [name for name in results if name not in {SECONDS, ROWS}]
    if len(rows) < 2 or not results:
        return None
    y = next(iter(metrics), results[-1])
    numbers = [name for name in settings if all(_is_number(row.settings.get(name)) for row in rows)]
    # The setting with the most different values is the most informative.
    numbers.sort(key=lambda name: -len({row.settings.get(name) for row in rows}))
    x = next((name for name in [*numbers, SECONDS, *dimensions] if name != y and name in dimensions), y)
    return Scatter("Runs over two settings or results", _points(rows, dimensions), dimensions, x, y)


def _is_number(value: Value) -> bool:
    return value is None or isinstance(value, int | float)


def parallel(rows: list[Row], settings: list[str], results: list[str]) -> Parallel | None:
    """The runs as lines across settings that differ and results; None if there is too little to draw."""
    metrics = [name for name in results if name not in {SECONDS, ROWS}]
    dimensions = [*settings[: MOST_AXES - len(metrics)], *metrics]
    if len(rows) < 2 or len(dimensions) < 2:
        return None
    return Parallel("Settings that differ, and metrics", _points(rows, dimensions), dimensions)


def difference_page(store: Queries, ask: Ask) -> Page:
    """The page of what differs between two runs."""
    before = search.run_of(store, ask.match["before"])
    after = search.run_of(store, ask.match["after"])
    swapped = Text(link("The other way round", URLS.difference(after.id, before.id)))
    return Page(
        f"{before.id} and {after.id}",
        lambda: [swapped, *comparison.compare(store, before, after, URLS)],
        {"before": before.id, "after": after.id} | asdict(differences.between(store, before, after)),
        section="Compare",
        trail=[("Compare", "/compare"), (after.pipeline, URLS.compare(recipe=after.pipeline))],
        heading="What differs",
    )
