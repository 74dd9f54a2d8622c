"""Which model a candidate is compared with."""

from __future__ import annotations

from collections.abc import Iterable

import ml_metadata as mlmd
from tfx.dsl.components.common import resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.types import Artifact, BaseChannel, Channel
from tfx.types.standard_artifacts import Model, ModelBlessing, PushedModel


def baseline_model(candidate: BaseChannel) -> resolver.Resolver:
    """The node that looks up the model that `candidate` is compared with; its output is `model`."""
    return resolver.Resolver(
        strategy_class=LatestOtherBlessedModelStrategy,
        candidate=candidate,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
        pushed_model=Channel(type=PushedModel),
    )


class LatestOtherBlessedModelStrategy(resolver.ResolverStrategy):
    """The latest blessed model that is not the candidate itself and was not rolled back from.

    TFX's LatestBlessedModelStrategy returns the candidate once it has been blessed, so that a run with nothing changed
    compares the model with itself and evaluates and pushes it again. It also returns a model that was taken out of
    service by a rollback: its metrics were good, or it would not have been pushed, and somebody found it bad all the
    same. The next candidate is held to what is served instead.
    """

    def resolve_artifacts(
        self, store: mlmd.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]] | None:
        """Resolves `model` and `model_blessing`; `candidate` and `pushed_model` are only compared.

        Args:
            store: The metadata store.
            input_dict: `candidate`: one Model; `model`, `model_blessing` and `pushed_model`: all of the pipeline's.
        """
        left_out = {artifact.id for artifact in input_dict["candidate"]} | withdrawn(input_dict["pushed_model"])
        others = {
            "model": [artifact for artifact in input_dict["model"] if artifact.id not in left_out],
            "model_blessing": input_dict["model_blessing"],
        }
        latest = LatestBlessedModelStrategy().resolve_artifacts(store, others)
        if latest is None:
            return None
        return {**latest, **{name: input_dict[name] for name in ("candidate", "pushed_model")}}


def withdrawn(pushed_models: Iterable[Artifact]) -> set[int]:
    """The ids of the models that a rollback took out of service and that nothing has brought back since.

    Args:
        pushed_models: All pushes and rollbacks; see components/pusher/manifest.py for their properties.
    """
    model_of: dict[int, int] = {}
    taken_out: set[int] = set()
    for artifact in sorted(pushed_models, key=lambda artifact: artifact.id):
        if not artifact.get_int_custom_property("pushed"):
            continue
        model = artifact.get_int_custom_property("current_model_id")
        taken_out.discard(model)
        restored = artifact.get_int_custom_property("restored_version")
        if restored:
            taken_out |= {later for version, later in model_of.items() if version > restored} - {model}
        else:
            model_of[int(artifact.get_string_custom_property("pushed_version"))] = model
    return taken_out
