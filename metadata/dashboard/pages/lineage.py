"""What an artifact was made from and what was made from it, as a graph to click through."""

from __future__ import annotations

from metadata import lineage as lineages
from metadata.dashboard import finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, BadRequestError, Page
from metadata.lineage import Direction, Lineage, Step
from metadata.pages.charts import Graph, Node
from metadata.queries import Queries
from metadata.records import STATE_WORDS, UNFINISHED, ArtifactRecord
from metadata.values import fingerprint_of, lineage_values

MOST_SHOWN = 60
"""Artifacts each way; a graph of more cannot be read."""

WAYS: dict[str, tuple[Direction, ...]] = {"both": ("up", "down"), "up": ("up",), "down": ("down",)}


def page(store: Queries, ask: Ask) -> Page:
    """The page of a lineage."""
    made = finding.artifact_of(store, ask.match["artifact"])
    way = ask.one("direction") or "both"
    if way not in WAYS:
        raise BadRequestError(f"direction is one of {', '.join(WAYS)}; received {way!r}.")
    found = [lineages.trace(store, made.artifact.id, direction, MOST_SHOWN) for direction in WAYS[way]]
    traced = [lineage for lineage in found if lineage is not None]
    files = {
        path: digest
        for lineage in traced
        if lineage.direction == "up"
        for step in lineage.steps.values()
        for path, digest in _files(step).items()
    }
    return Page(
        "lineage.html",
        f"Lineage of {made.artifact.type} {made.artifact.id}",
        lambda: {
            "made": made,
            "way": way,
            "ways": {name: f"{URLS.lineage(made.artifact.id)}?direction={name}" for name in WAYS},
            "graph": graph(traced, made.artifact.id),
            "raw_files": files,
            "whole": all(lineage.whole for lineage in traced),
            "most": MOST_SHOWN,
        },
        {lineage.direction: lineage_values(lineage) for lineage in traced},
        section="Artifacts",
        live=any(step.node_run.state in UNFINISHED for lineage in traced for step in lineage.steps.values()),
    )


def _files(step: Step) -> dict[str, str]:
    made_with = fingerprint_of(step.node_run)
    return made_with.files if made_with else {}


def graph(traced: list[Lineage], current: int) -> Graph:
    """Artifacts and node runs as a graph, in the direction in which the data flowed."""
    artifacts = {number: artifact for lineage in traced for number, artifact in lineage.artifacts.items()}
    steps = {number: step for lineage in traced for number, step in lineage.steps.items()}
    nodes = [_artifact(artifact, current) for _number, artifact in sorted(artifacts.items())]
    nodes += [_step(step) for _number, step in sorted(steps.items())]
    edges = {
        pair
        for number, step in steps.items()
        for pair in (
            *((f"a{taken}", f"n{number}") for ids in step.inputs.values() for taken in ids if taken in artifacts),
            *((f"n{number}", f"a{out}") for ids in step.outputs.values() for out in ids if out in artifacts),
        )
    }
    return Graph("Lineage", nodes, sorted(edges))


def _artifact(artifact: ArtifactRecord, current: int) -> Node:
    return Node(
        id=f"a{artifact.id}",
        label=artifact.type,
        detail=str(artifact.id),
        shape="artifact",
        href=URLS.lineage(artifact.id),
        current=artifact.id == current,
    )


def _step(step: Step) -> Node:
    run = step.place.run
    return Node(
        id=f"n{step.node_run.id}",
        label=step.place.node,
        detail=run or "",
        state=STATE_WORDS[step.node_run.state],
        href=URLS.node(run, step.place.node) if run else "",
    )
