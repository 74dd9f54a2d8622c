"""What the run's model was made from, up to the raw files with their digests."""

from __future__ import annotations

from dataclasses import dataclass

from metadata import lineage
from metadata.fingerprints import PROPERTY, Fingerprint
from metadata.lineage import Step
from metadata.pages.charts import Graph, Node
from metadata.pages.links import Links
from metadata.pages.rendering import count
from metadata.records import QUIET_NODES, ArtifactRecord
from metadata.report.source import Source, Surroundings

MOST_FILES_DRAWN = 5


@dataclass(frozen=True)
class Made:
    """A node run that had a part in it.

    Attributes:
        node: The node.
        run: The run; empty where no run did it.
        inputs: What it took: name, artifact type and id.
        outputs: What it put out that the model needed.
        code_digest: One digest for all its code; empty where that was not recorded.
        code_files: How many files that is.
        packages: Versions by package.
        files: Digests by file that it read from outside.
    """

    node: str
    run: str
    inputs: list[tuple[str, ArtifactRecord]]
    outputs: list[tuple[str, ArtifactRecord]]
    code_digest: str
    code_files: int
    packages: dict[str, str]
    files: dict[str, str]


@dataclass(frozen=True)
class Lineage:
    """What the model was made from.

    Attributes:
        model: The Model artifact.
        chart: The graph, from raw files to the model.
        steps: The node runs, oldest first.
        whole: Whether that is all.
    """

    model: ArtifactRecord
    chart: Graph
    steps: list[Made]
    whole: bool


def read(source: Source, surroundings: Surroundings) -> Lineage | None:
    """Reads it; None where the run has no model."""
    model = source.artifact("Trainer", "model")
    traced = None if model is None else lineage.trace(source.store, model.id)
    if model is None or traced is None:
        return None
    steps = [step for _id, step in sorted(traced.steps.items()) if step.place.node not in QUIET_NODES]
    needed = {number for step in steps for ids in step.inputs.values() for number in ids} | {model.id}
    return Lineage(
        model=model,
        chart=_chart(traced, steps, needed, surroundings.links),
        steps=[_made(step, traced.artifacts, needed) for step in steps],
        whole=traced.whole,
    )


def _made(step: Step, artifacts: dict[int, ArtifactRecord], needed: set[int]) -> Made:
    made_with = _fingerprint(step)
    return Made(
        node=step.place.node,
        run=step.place.run or "",
        inputs=_named(step.inputs, artifacts, needed),
        outputs=_named(step.outputs, artifacts, needed),
        code_digest=made_with.code_digest if made_with.code else "",
        code_files=len(made_with.code),
        packages=made_with.packages,
        files=made_with.files,
    )


def _fingerprint(step: Step) -> Fingerprint:
    text = step.node_run.properties.get(PROPERTY)
    return Fingerprint.from_json(text) if text else Fingerprint()


def _named(
    ids: dict[str, tuple[int, ...]], artifacts: dict[int, ArtifactRecord], needed: set[int]
) -> list[tuple[str, ArtifactRecord]]:
    found = [(name, number) for name, numbers in ids.items() for number in numbers]
    return [(name, artifacts[number]) for name, number in found if number in artifacts and number in needed]


def _chart(traced: lineage.Lineage, steps: list[Step], needed: set[int], links: Links) -> Graph:
    nodes = [
        Node(
            f"a{number}",
            artifact.type,
            str(number),
            shape="artifact",
            href=links.artifact(number),
            current=number == traced.start,
        )
        for number, artifact in traced.artifacts.items()
        if number in needed
    ]
    edges: list[tuple[str, str]] = []
    for step in steps:
        name = f"n{step.node_run.id}"
        run = step.place.run or ""
        nodes.append(Node(name, step.place.node, run, href=links.node(run, step.place.node) if run else ""))
        edges += [(f"a{number}", name) for ids in step.inputs.values() for number in ids if number in traced.artifacts]
        edges += [(name, f"a{number}") for ids in step.outputs.values() for number in ids if number in needed]
        files = _files(step)
        nodes += files
        edges += [(file.id, name) for file in files]
    return Graph("What the model was made from", nodes, list(dict.fromkeys(edges)))


def _files(step: Step) -> list[Node]:
    """The raw files that a node run read; of many only how many."""
    found = _fingerprint(step).files
    execution = step.node_run.id
    if len(found) > MOST_FILES_DRAWN:
        return [Node(f"f{execution}", count(len(found), "file"), shape="artifact")]
    return [
        Node(f"f{execution}.{place}", path.rpartition("/")[2], digest[:16], shape="artifact")
        for place, (path, digest) in enumerate(found.items())
    ]
