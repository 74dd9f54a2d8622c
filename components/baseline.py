"""Which model a candidate is compared with."""

from __future__ import annotations

import ml_metadata as mlmd
from tfx.dsl.components.common import resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.types import Artifact


class LatestOtherBlessedModelStrategy(resolver.ResolverStrategy):
    """The latest blessed model that is not the candidate itself.

    TFX's LatestBlessedModelStrategy returns the candidate once it has been blessed, so that a run with nothing changed
    compares the model with itself and evaluates and pushes it again.
    """

    def resolve_artifacts(
        self, store: mlmd.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]] | None:
        """Resolves `model` and `model_blessing`; `candidate` is only compared.

        Args:
            store: The metadata store.
            input_dict: `candidate`: one Model; `model` and `model_blessing`: all of the pipeline's.
        """
        candidates = {artifact.id for artifact in input_dict["candidate"]}
        others = {
            "model": [artifact for artifact in input_dict["model"] if artifact.id not in candidates],
            "model_blessing": input_dict["model_blessing"],
        }
        latest = LatestBlessedModelStrategy().resolve_artifacts(store, others)
        return None if latest is None else {**latest, "candidate": input_dict["candidate"]}
