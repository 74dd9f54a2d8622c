"""A run's page: its sections in order, and the report file that every run leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from contracts import atomic
from contracts.content import ContentError
from metadata.queries import Queries
from metadata.records import RunRecord
from ui import rendering
from ui.parts import Parts, Section, Text
from ui.report import data, drift, evaluation, origin, outcome, plots, training
from ui.report.source import Source, Surroundings
from ui.texts import MILLISECONDS, local_time

Reader = Callable[[Source, Surroundings], Parts]

SECTIONS: tuple[tuple[str, str, Reader], ...] = (
    ("summary", "Summary", outcome.summary_section),
    ("graph", "Nodes", outcome.nodes_section),
    ("statistics", "Data", data.data_section),
    ("drift", "Drift", drift.drift_section),
    ("schema", "Schema", data.schema_section),
    ("plots", "Plots", plots.plots_section),
    ("training", "Training", training.training_section),
    ("evaluation", "Evaluation", evaluation.evaluation_section),
    ("slices", "Slices", evaluation.slices_section),
    ("worst-examples", "Worst examples", evaluation.worst_examples_section),
    ("lineage", "Lineage", origin.lineage_section),
    ("settings", "Settings", origin.settings_section),
    ("versions", "Versions", origin.versions_section),
    ("model-card", "Model card", training.model_card_section),
    ("serving", "Serve it, and go back", outcome.serving_section),
)
"""All sections in the order of the page: anchor, heading, and the function that makes the parts; may return none."""


def sections(source: Source, surroundings: Surroundings, *, fault: str = "error") -> list[Section]:
    """The sections of a run that have parts; a missing or broken file affects only its own section.

    Args:
        source: The run.
        surroundings: What is not in the store about it.
        fault: The look of the message about such a file.
    """
    shown = []
    for name, title, read in SECTIONS:
        try:
            parts = read(source, surroundings)
        except ContentError as error:
            parts = [Text(f"This cannot be shown: {error}.", fault)]
        if any(part is not None for part in parts):
            shown.append(Section(name, title, parts))
    return shown


def render(source: Source, surroundings: Surroundings, *, inline: bool) -> str:
    """The page of a run, as HTML.

    Args:
        source: The run.
        surroundings: What is not in the store about it.
        inline: Whether to embed style and script, as a file that stands alone needs.
    """
    run = source.run
    now = local_time(round(time.time() * MILLISECONDS))
    return rendering.render(
        "page.html",
        inline=inline,
        title=run.id,
        header=f"{run.pipeline} · run {run.id}",
        heading=f"Run {run.id}",
        shown=sections(source, surroundings),
        footer=f"Run {run.id} of {run.pipeline}, as the metadata store had it on {now}.",
    )


def write(store: Queries, run: RunRecord, surroundings: Surroundings, path: Path) -> None:
    """Writes the report of a run atomically, as one file that needs no network and no server.

    Raises:
        OSError: The file cannot be written.
    """
    page = render(Source.from_run(store, run), surroundings, inline=True)
    atomic.write_text(path, page)
