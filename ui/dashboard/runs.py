"""The list of runs and deployments, a run, and its curves in TensorBoard."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from contracts.file_names import REPORT_FILE
from metadata import searching
from metadata.queries import Queries
from metadata.records import STATE_WORDS, Deployment, RunRecord
from metadata.values import node_values, run_values
from ui.dashboard import search
from ui.dashboard.files import metrics_of
from ui.dashboard.page import Ask, BadRequestError, NotFoundError, Page, metric_columns, paging, run_link
from ui.links import URLS
from ui.parts import Bullets, Column, Filter, Parts, Picker, Section, Table, Text, Verbatim
from ui.report import page as report
from ui.report.source import Source
from ui.texts import Inline, bold, code, dim, line, link, local_time, seconds, state

LOGS = "tensorboard"
"""The folder of event files in the Trainer's output."""


def runs_page(store: Queries, ask: Ask) -> Page:
    """A page of runs, newest first."""
    recipe, wanted, before = ask.value("recipe"), ask.value("state"), ask.number("before")
    if wanted is not None and wanted not in searching.KINDS:
        raise BadRequestError(f"state is one of {', '.join(searching.KINDS)}; received {wanted!r}.")
    runs, older = searching.find_runs(store, wanted, recipe, before)
    deployed = store.deployed()
    served = {(each.pushed_by.pipeline, each.version) for each in deployed if each.pushed_by}
    metrics = _metrics(store, runs)
    rows = [
        (
            run,
            run_values(run)
            | {"deployed": (run.pipeline, run.pushed_version) in served, "metrics": metrics.get(run.id, {})},
        )
        for run in runs
    ]

    def show() -> Parts:
        pickers = [
            Picker("recipe", "Recipe", store.pipelines(), recipe),
            Picker("state", "State", list(searching.KINDS), wanted),
        ]
        others = URLS.runs(recipe=recipe, state=wanted)
        older_page = URLS.runs(recipe=recipe, state=wanted, before=older) if older else None
        ended = "" if before is None else " any more"
        none = f"There are no {wanted or ''} runs{f' of {recipe}' if recipe else ''}{ended}."
        compared = recipe or (rows[0][0].pipeline if rows else "")
        parts = [
            Filter("/", pickers),
            _table(rows) if rows else Text("None among the runs that were searched so far." if older else none),
            paging("runs", others, older_page, before),
            Text(link(f"Compare the runs of {compared}", URLS.compare(recipe=compared))) if len(rows) > 1 else None,
        ]
        cards = [Section("deployed", "Deployed", [Bullets([_card(each) for each in deployed], "cards")])]
        return [*(cards if deployed else []), Section("list", "Runs, newest first", parts)]

    return Page("Runs", show, [values for _run, values in rows], section="Runs", live=True)


def _table(rows: list[tuple[RunRecord, dict[str, Any]]]) -> Table:
    def time(row: tuple[RunRecord, dict[str, Any]]) -> Inline:
        run, values = row
        return since(run.started) if run.goes_on else seconds(values["seconds"])

    def pushed(row: tuple[RunRecord, dict[str, Any]]) -> Inline:
        run, values = row
        return line(run.pushed_version or "", *([" ", state("deployed")] if values["deployed"] else []))

    return Table(
        "runs",
        rows,
        [
            Column("Run", lambda row: run_link(row[0].id), "id"),
            Column("State", lambda row: state(row[1]["state"])),
            Column("Recipe", lambda row: row[0].pipeline),
            Column("Started", lambda row: local_time(row[0].started), "time"),
            Column("Time", time, "number"),
            Column("Ran", lambda row: row[1]["ran"], "number"),
            Column("Cached", lambda row: row[1]["cached"], "number"),
            *metric_columns(rows, lambda row: row[1]["metrics"]),
            Column("Pushed", pushed),
        ],
        sortable=True,
    )


def since(milliseconds: int) -> Markup:
    """The time since then, which the page's script keeps counting."""
    return Markup('<span data-since="{}"></span>').format(milliseconds)


def note(node: str, text: str) -> Markup:
    """A running node's progress, which the page's script keeps up to date."""
    return Markup('<span data-note="{}">{}</span>').format(node, text)


def _card(deployed: Deployment) -> Inline:
    """A deployed version: which run pushed it, its model and lineage."""
    origin: Inline = ""
    if deployed.restored:
        origin = dim(f"a rollback to {deployed.restored}")
    elif deployed.pushed_by and deployed.pushed_by.run:
        origin = dim(line("pushed by ", run_link(deployed.pushed_by.run)))
    model = line(link(f"Model {deployed.model}", URLS.artifact(deployed.model)), ", ") if deployed.model else ""
    lineage = link("its lineage", URLS.lineage(deployed.pushed.id))
    name = bold(f"{deployed.folder.rpartition('/')[2]}: version {deployed.version}")
    return line(name, origin, Markup("<span>{}{}</span>").format(model, lineage))


def _metrics(store: Queries, runs: list[RunRecord]) -> dict[str, dict[str, float | None]]:
    """The Evaluator's values by run and metric, for runs whose files exist."""
    evaluators = {n.id: run.id for run in runs for n in run.nodes if n.node == "Evaluator" and n.succeeded}
    metrics = {}
    for execution, outputs in store.outputs_of(evaluators).items():
        for artifact in outputs.get("evaluation", []):
            metrics[evaluators[execution]] = metrics_of(artifact)
    return metrics


def run_page(store: Queries, ask: Ask) -> Page:
    """The page of a run: the sections of its report, live while it is going on."""
    run = search.run_of(store, ask.match["run"])
    goes_on = _goes_on(store, ask, run)
    running = [node.node for node in run.nodes if STATE_WORDS[node.state] == "running"]
    notes = {node: ask.site.note(ask.site.log_root / run.id, node) for node in running}

    def show() -> Parts:
        source = Source.from_run(store, run)
        surroundings = replace(ask.site.surroundings(store, run), links=URLS)
        following = line(
            "This run is going on",
            *(line(f": {node} ", note(node, text)) for node, text in notes.items()),
            ". This page follows it.",
        )
        parts = [Text(following, "note") if goes_on else None, Bullets(_elsewhere(source, ask), "links")]
        now = Section("now", "This run elsewhere", parts, heading=False)
        return [now, *report.sections(source, surroundings, fault="warning")]

    nodes = [node_values(node) | {"note": notes.get(node.node, "")} for node in run.nodes]
    return Page(
        run.id,
        show,
        run_values(run) | {"goes_on": goes_on, "nodes": nodes},
        section="Runs",
        live=goes_on,
        trail=[("Runs", "/"), (run.pipeline, URLS.runs(recipe=run.pipeline))],
        contents=True,
    )


def _goes_on(store: Queries, ask: Ask, run: RunRecord) -> bool:
    if run.goes_on:
        return True
    return ask.site.held(run.pipeline) and store.runs(run.pipeline, limit=1)[0].id == run.id


def _elsewhere(source: Source, ask: Ask) -> list[Inline]:
    """Links to other pages and files of a run."""
    run = source.run
    links: list[Inline] = []
    if (ask.site.log_root / run.id / REPORT_FILE).exists():
        links.append(Markup('<a href="{}" download>Report as one file</a>').format(URLS.report(run.id)))
    if source.previous:
        previous = source.previous.run.id
        links.append(link(f"What changed since {previous}", URLS.difference(previous, run.id)))
    links.append(link(f"Compare with all runs of {run.pipeline}", URLS.compare(recipe=run.pipeline)))
    if source.artifact("Trainer", "model_run"):
        links.append(link("TensorBoard", URLS.tensorboard(run.id)))
    return links


def report_file(store: Queries, ask: Ask) -> Path:
    """The report of a run.

    Raises:
        NotFoundError: There is none.
    """
    run_id = search.run_of(store, ask.match["run"]).id
    path = ask.site.log_root / run_id / REPORT_FILE
    if not path.is_file():
        raise NotFoundError(f"The run {run_id} has left no report.", [(run_id, URLS.run(run_id))])
    return path


def tensorboard_page(store: Queries, ask: Ask) -> Page:
    """The page of a run's curves in TensorBoard: the command, and a link if `--tensorboard` started one."""
    run = search.run_of(store, ask.match["run"])
    artifact = Source.from_run(store, run).artifact("Trainer", "model_run")
    if artifact is None:
        raise NotFoundError(f"The run {run.id} has trained no model.", [(run.id, URLS.run(run.id))])
    folder = artifact.path / LOGS
    command = shlex.join([ask.site.program("tensorboard"), "--logdir", str(folder), "--host", "localhost"])
    running = ask.site.tensorboard.url if ask.site.tensorboard else ""
    starting = ask.site.tensorboard is not None and not running

    def show() -> Parts:
        gone = line("Its event files are not there any more: ", Markup('<span class="path">{}</span>').format(folder))
        parts: Parts = [
            Text(_beside(running, starting, folder, ask)),
            Text("For this run alone, in a terminal:"),
            Verbatim(code(command), look="command"),
        ]
        return [Section("tensorboard", "TensorBoard", parts if folder.is_dir() else [Text(gone)], heading=False)]

    return Page(
        f"TensorBoard of {run.id}",
        show,
        {"run": run.id, "folder": str(folder), "command": command, "url": running or None},
        section="Runs",
        live=starting,
        trail=[("Runs", "/"), (run.id, URLS.run(run.id))],
    )


def _beside(running: str, starting: bool, folder: Path, ask: Ask) -> Inline:
    """Says where the dashboard's TensorBoard is."""
    if running:
        opening = Markup('<a href="{}" target="_blank" rel="noopener">Open TensorBoard</a>')
        return line(opening.format(_address(running, folder, ask)), " with the curves of this run (in a new tab).")
    if starting:
        return "TensorBoard is starting; the link comes by itself."
    return line("No TensorBoard runs with this dashboard; ", code("--tensorboard"), " starts one.")


def _address(running: str, folder: Path, ask: Ask) -> str:
    """TensorBoard's address, filtered to this run; it names runs by their folders below its own."""
    assert ask.site.tensorboard is not None  # noqa: S101 - it is what is running
    try:
        name = folder.relative_to(ask.site.tensorboard.folder)
    except ValueError:
        return running
    return f"{running}?runFilter={quote('^' + re.escape(str(name)))}#timeseries"
