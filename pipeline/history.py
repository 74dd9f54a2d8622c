"""The versions that can be served, with where each came from: what `millrace rollback --list` shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table
from rich.text import Text

from components.evaluation.settings import SUMMARY_FILE
from components.pusher.versions import Version, withdrawn_models
from metadata.store import Store

Metrics = dict[str, float | None]


@dataclass(frozen=True)
class Entry:
    """A version and what is known of it.

    Attributes:
        number: The version's number.
        pushed: When it appeared, in local time; empty where it has no manifest.
        source: The run that pushed it, or the version that a rollback restored.
        model: The id of its Model artifact; empty where it has no manifest.
        metrics: The Evaluator's values by metric; empty where the store does not know them.
        note: `served`, `rolled back`, or nothing.
    """

    number: int
    pushed: str
    source: str
    model: str
    metrics: Metrics
    note: str


def entries(name: str, existing: Sequence[Version], store: Store | None) -> list[Entry]:
    """The entries of a recipe's versions, newest first.

    Args:
        name: The recipe's name.
        existing: The versions, oldest first.
        store: Knows their metrics; None where there is none.
    """
    metrics = _metrics_by_model(name, store) if store else {}
    withdrawn = set(withdrawn_models(list(existing)))
    found = []
    for version in reversed(existing):
        made = version.manifest
        note = "served" if version is existing[-1] else ""
        if made is None:
            found.append(Entry(version.number, "", "not pushed by a run", "", {}, note))
            continue
        source = made.origin.run_id
        if made.rollback:
            source = f"rollback to {made.rollback.restored_version}"
        if not note and made.model_digest in withdrawn:
            note = "rolled back"
        pushed = made.pushed.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        model = made.origin.model_id
        found.append(Entry(version.number, pushed, source, str(model), metrics.get(model, {}), note))
    return found


def table(name: str, shown: Sequence[Entry]) -> Table:
    """The entries as a table."""
    made = Table(title=f"Versions of {name}", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    names = list(dict.fromkeys(metric for entry in shown for metric in entry.metrics))
    for heading in ("Version", "Pushed", "By", "Model", *names, ""):
        justify: Literal["left", "right"] = "right" if heading in {"Model", *names} else "left"
        made.add_column(heading, header_style="dim", justify=justify, no_wrap=True)
    for entry in shown:
        values = [_number(entry.metrics.get(metric)) for metric in names]
        note = Text(entry.note, style="bold green" if entry.note == "served" else "yellow")
        made.add_row(str(entry.number), entry.pushed, entry.source, entry.model, *values, note)
    return made


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _metrics_by_model(name: str, store: Store) -> dict[int, Metrics]:
    """What the latest evaluation of each model found."""
    found: dict[int, Metrics] = {}
    for record in store.history(name, "Evaluator"):
        models = store.inputs(record.id).get("model", [])
        evaluations = store.outputs(record.id).get("evaluation", [])
        if record.succeeded and models and evaluations:
            if models[0].id in found:
                continue
            summary = evaluations[0].file(SUMMARY_FILE)
            if summary.exists():
                values = json.loads(summary.read_text(encoding="utf-8"))["metrics"]
                found[models[0].id] = {metric["name"]: metric["value"] for metric in values}
    return found
