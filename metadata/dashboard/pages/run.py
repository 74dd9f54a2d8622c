"""A run: the sections of its report, live while it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from metadata.contents.places import REPORT_FILE
from metadata.dashboard import finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.queries import Queries
from metadata.records import STATE_WORDS, RunRecord
from metadata.report import page as report
from metadata.report.source import Source
from metadata.values import node_values, run_values


def page(store: Queries, ask: Ask) -> Page:
    """The page of a run."""
    run = finding.run_of(store, ask.match["run"])
    goes_on = _goes_on(store, ask, run)
    notes = _notes(ask, run)
    return Page(
        "run.html",
        run.id,
        lambda: _values(store, ask, run) | {"goes_on": goes_on, "notes": notes},
        _twin(run, goes_on, notes),
        section="Runs",
        live=goes_on,
    )


def _values(store: Queries, ask: Ask, run: RunRecord) -> dict[str, Any]:
    source = Source.of(store, run)
    parts = report.parts(source, replace(ask.site.surroundings(store, run), links=URLS))
    return {
        "run": run,
        "parts": parts,
        "entries": [(part.of.id, part.of.title) for part in parts],
        "previous": source.previous.run.id if source.previous else "",
        "report": URLS.report(run.id) if (ask.site.log_root / run.id / REPORT_FILE).exists() else "",
        "curves": URLS.tensorboard(run.id) if source.artifact("Trainer", "model_run") else "",
    }


def _goes_on(store: Queries, ask: Ask, run: RunRecord) -> bool:
    if run.goes_on:
        return True
    return ask.site.held(run.pipeline) and store.runs(run.pipeline, limit=1)[0].id == run.id


def _notes(ask: Ask, run: RunRecord) -> dict[str, str]:
    """What running nodes say of their progress."""
    running = [node.node for node in run.nodes if STATE_WORDS[node.state] == "running"]
    return {node: ask.site.note(ask.site.log_root / run.id, node) for node in running}


def _twin(run: RunRecord, goes_on: bool, notes: dict[str, str]) -> dict[str, Any]:
    nodes = [node_values(node) | {"note": notes.get(node.node, "")} for node in run.nodes]
    return run_values(run) | {"goes_on": goes_on, "nodes": nodes}


def report_file(store: Queries, ask: Ask) -> Path:
    """Where the report of a run is, or would be."""
    return ask.site.log_root / finding.run_of(store, ask.match["run"]).id / REPORT_FILE


def checked(path: Path, ask: Ask) -> Path:
    """The report's file.

    Raises:
        NotFoundError: There is none.
    """
    if not path.is_file():
        run_id = ask.match["run"]
        raise NotFoundError(f"The run {run_id} has left no report.", [(run_id, URLS.run(run_id))])
    return path
