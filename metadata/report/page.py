"""A run's page: its sections in order, and the file that every run leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metadata.contents.reading import ContentError
from metadata.pages import rendering
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.report.sections import (
    drift,
    evaluation,
    graph,
    lineage,
    model_card,
    schema,
    serving,
    settings,
    slices,
    statistics,
    summary,
    training,
    versions,
    worst_examples,
)
from metadata.report.source import Source, Surroundings

TEMPLATE = "run/run.html"
PARTIALS = ("macros.html", "run/features.html", "run/distances.html")
MILLISECONDS = 1000

Reader = Callable[[Source, Surroundings], object | None]


@dataclass(frozen=True)
class Section:
    """A section of a run's page.

    Attributes:
        id: Names its anchor and its template, `run/sections/<id>.html`, which gets what was read as `section`.
        title: Its heading.
        read: Reads what it shows; None where the run has nothing of the kind.
    """

    id: str
    title: str
    read: Reader

    @property
    def template(self) -> str:
        """The template's name."""
        return f"run/sections/{self.id.replace('-', '_')}.html"


@dataclass(frozen=True)
class Part:
    """A section of the page of one run.

    Attributes:
        of: The section.
        content: What its template shows; None where it could not be read.
        fault: Why it could not: which file is missing or broken; empty where it could.
    """

    of: Section
    content: object | None
    fault: str = ""


SECTIONS = (
    Section("summary", "Summary", summary.read),
    Section("graph", "Nodes", graph.read),
    Section("statistics", "Data", statistics.read),
    Section("drift", "Drift", drift.read),
    Section("schema", "Schema", schema.read),
    Section("training", "Training", training.read),
    Section("evaluation", "Evaluation", evaluation.read),
    Section("slices", "Slices", slices.read),
    Section("worst-examples", "Worst examples", worst_examples.read),
    Section("lineage", "Lineage", lineage.read),
    Section("settings", "Settings", settings.read),
    Section("versions", "Versions", versions.read),
    Section("model-card", "Model card", model_card.read),
    Section("serving", "Serve it, and go back", serving.read),
)
"""All sections, in the order of the page."""


def prepare() -> None:
    """Loads the templates ahead of time: whoever waits for a run's end has the time now, and not then."""
    for name in (TEMPLATE, *PARTIALS, *(section.template for section in SECTIONS)):
        rendering.templates().get_template(name)


def parts(source: Source, surroundings: Surroundings) -> list[Part]:
    """What there is to show of a run; a file that is missing or broken costs its own section alone."""
    found = []
    for section in SECTIONS:
        try:
            content = section.read(source, surroundings)
        except ContentError as error:
            found.append(Part(section, None, str(error)))
            continue
        if content is not None:
            found.append(Part(section, content))
    return found


def render(source: Source, surroundings: Surroundings, *, inline: bool) -> str:
    """The page of a run, as HTML.

    Args:
        source: The run.
        surroundings: What the store does not know of it.
        inline: Whether style and script are in the page itself, as a file that stands alone needs it.
    """
    found = parts(source, surroundings)
    now = round(time.time() * MILLISECONDS)
    return rendering.render(TEMPLATE, inline=inline, links=surroundings.links, run=source.run, parts=found, now=now)


def write(store: Queries, run: RunRecord, surroundings: Surroundings, path: Path) -> None:
    """Writes the report of a run: one file, which needs no network and no server; whole or not at all.

    Raises:
        OSError: It cannot be written there.
    """
    page = render(Source.of(store, run), surroundings, inline=True)
    rendering.write(page, path)
