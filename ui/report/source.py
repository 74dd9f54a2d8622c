"""What a run's page is made from: its node runs, what they put out, and the same of the run before it."""

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
    """What the metadata store does not know of a run.

    Attributes:
        graph: By node of the recipe's pipeline, in the order of the data flow, the nodes whose results it takes.
        log_folder: The run's folder of logs.
        commands: What a reader may want to do next: a heading and a command line each.
        recipe_text: The README of the recipe, or an empty text.
        served: What became of the pushed model since, as a sentence; empty where nothing was pushed or withdrawn.
        links: Where the things that the page names can be looked at.
    """

    graph: Mapping[str, tuple[str, ...]]
    log_folder: Path | None = None
    commands: tuple[tuple[str, str], ...] = ()
    recipe_text: str = ""
    served: str = ""
    links: Links = field(default_factory=Links)


@dataclass(frozen=True)
class Source:
    """A run, and what its nodes put out.

    Attributes:
        store: The metadata store.
        run: The run.
        outputs: The output artifacts by node and output name; of nodes that succeeded.
    """

    store: Queries
    run: RunRecord
    outputs: Mapping[str, Mapping[str, list[ArtifactRecord]]] = field(repr=False)

    @classmethod
    def of(cls, store: Queries, run: RunRecord) -> Source:
        """Reads the outputs of a run, in two queries."""
        by_execution = store.outputs_of(node.id for node in run.nodes if node.succeeded)
        outputs = {node.node: by_execution.get(node.id, {}) for node in run.nodes if node.succeeded}
        return cls(store, run, outputs)

    @property
    def nodes(self) -> dict[str, NodeRun]:
        """The node runs by node."""
        return {node.node: node for node in self.run.nodes}

    def artifact(self, node: str, name: str) -> ArtifactRecord | None:
        """What a node put out under a name, or None."""
        return next(iter(self.outputs.get(node, {}).get(name, [])), None)

    def file(self, node: str, name: str, file: str) -> Path | None:
        """A file of such an artifact; None where the artifact or the file is not there (any more)."""
        artifact = self.artifact(node, name)
        path = None if artifact is None else artifact.file(file)
        return path if path is not None and path.exists() else None

    @cached_property
    def fingerprints(self) -> dict[str, Fingerprint]:
        """What each node's result rests on, also where it was cached or taken over."""
        by_execution = {node.id: self.outputs.get(node.node, {}) for node in self.run.nodes}
        return differences.fingerprints(self.store, self.run, by_execution)

    @cached_property
    def previous(self) -> Source | None:
        """The run of the same pipeline before this one, or None."""
        found = self.store.runs(self.run.pipeline, limit=1, before=self.run.number)
        return Source.of(self.store, found[0]) if found else None

    @cached_property
    def evaluation(self) -> evaluations.Summary | None:
        """What the Evaluator found; None where it did not run to its end.

        Raises:
            ContentError: Its file is missing or broken.
        """
        artifact = self.artifact("Evaluator", "evaluation")
        return None if artifact is None else evaluations.read_summary(artifact)

    @cached_property
    def insights(self) -> evaluations.Insights | None:
        """A closer look at the model; None where the Evaluator left none.

        Raises:
            ContentError: Its file is broken.
        """
        artifact = self.artifact("Evaluator", "evaluation")
        return None if artifact is None else evaluations.read_insights(artifact)

    @cached_property
    def card(self) -> Card | None:
        """The card of the model; None where the Trainer did not come to its end.

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
        found = next((run for run in earlier if any(n.node == node and n.succeeded for n in run.nodes)), None)
        return None if found is None else Source.of(self.store, found)
