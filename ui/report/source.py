"""The data of a run's page: its node runs, their outputs, and those of the previous run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from contracts import evaluation as evaluations
from contracts.fingerprints import Fingerprint
from contracts.model_card import Card, read_card_of
from metadata import differences
from metadata.queries import Queries
from metadata.records import ArtifactRecord, NodeRun, RunRecord
from ui.links import Links


@dataclass(frozen=True)
class Surroundings:
    """What is not in the metadata store about a run.

    Attributes:
        graph: The upstream nodes of each node of the recipe's pipeline, in the order of the data flow.
        log_folder: The run's log folder.
        commands: What a reader may want to do next: headings and command lines.
        recipe_text: The recipe's README, or empty.
        served: What has become of the pushed model, as a sentence; empty if nothing was pushed or withdrawn.
        links: Links to the things that the page names.
    """

    graph: Mapping[str, tuple[str, ...]]
    log_folder: Path | None = None
    commands: tuple[tuple[str, str], ...] = ()
    recipe_text: str = ""
    served: str = ""
    links: Links = field(default_factory=Links)


@dataclass(frozen=True)
class Source:
    """A run and the outputs of its nodes.

    Attributes:
        store: The metadata store.
        run: The run.
        outputs: The output artifacts of nodes that succeeded, by node and output name.
    """

    store: Queries
    run: RunRecord
    outputs: Mapping[str, Mapping[str, list[ArtifactRecord]]] = field(repr=False)

    @classmethod
    def from_run(cls, store: Queries, run: RunRecord) -> Source:
        """Reads the outputs of a run, in two queries."""
        by_execution = store.outputs_of(node.id for node in run.nodes if node.succeeded)
        outputs = {node.node: by_execution.get(node.id, {}) for node in run.nodes if node.succeeded}
        return cls(store, run, outputs)

    @property
    def nodes(self) -> dict[str, NodeRun]:
        """The node runs by node."""
        return {node.node: node for node in self.run.nodes}

    def artifact(self, node: str, name: str) -> ArtifactRecord | None:
        """A node's output artifact by its name, or None."""
        return next(iter(self.outputs.get(node, {}).get(name, [])), None)

    def file(self, node: str, name: str, file: str) -> Path | None:
        """A file in such an artifact; None if the artifact or the file does not exist (any more)."""
        artifact = self.artifact(node, name)
        path = None if artifact is None else artifact.file(file)
        return path if path is not None and path.exists() else None

    @cached_property
    def fingerprints(self) -> dict[str, Fingerprint]:
        """The fingerprint of each node, including those that were cached or taken over."""
        by_execution = {node.id: self.outputs.get(node.node, {}) for node in self.run.nodes}
        return differences.fingerprints(self.store, self.run, by_execution)

    @cached_property
    def previous(self) -> Source | None:
        """The previous run of the same pipeline, or None."""
        earlier = self.store.runs(self.run.pipeline, limit=1, before=self.run.number)
        return Source.from_run(self.store, earlier[0]) if earlier else None

    @cached_property
    def evaluation(self) -> evaluations.Summary | None:
        """The Evaluator's summary; None if it did not succeed.

        Raises:
            ContentError: Its file is missing or broken.
        """
        artifact = self.artifact("Evaluator", "evaluation")
        return None if artifact is None else evaluations.read_summary(artifact)

    @cached_property
    def insights(self) -> evaluations.Insights | None:
        """The Evaluator's insights; None if it left none.

        Raises:
            ContentError: Its file is broken.
        """
        artifact = self.artifact("Evaluator", "evaluation")
        return None if artifact is None else evaluations.read_insights(artifact)

    @cached_property
    def card(self) -> Card | None:
        """The model's card; None if the Trainer did not succeed.

        Raises:
            ContentError: It is missing or broken.
        """
        artifact = self.artifact("Trainer", "model")
        return None if artifact is None else read_card_of(artifact)

    def before(self, node: str) -> Source | None:
        """The latest earlier run of the same pipeline in which this node succeeded."""
        if self.previous is not None and node in self.previous.outputs:
            return self.previous
        earlier = self.store.runs(self.run.pipeline, before=self.run.number)
        latest = next((run for run in earlier if any(n.node == node and n.succeeded for n in run.nodes)), None)
        return None if latest is None else Source.from_run(self.store, latest)
