"""Which models a candidate is compared with: the served one, and the best served so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import ml_metadata as mlmd
from tfx.dsl.components.common import resolver
from tfx.dsl.io import fileio
from tfx.types import Artifact, BaseChannel, Channel
from tfx.types.standard_artifacts import Model, ModelBlessing, PushedModel

from contracts.file_names import SERVING_MODEL_FOLDER

REFERENCE_PROPERTY = "reference_model_id"
"""The custom property of a `ModelBlessing` that holds the id of the best model among those served up to its own."""


def baseline_model(candidate: BaseChannel) -> resolver.Resolver:
    """The node that looks up the models that `candidate` is compared with; its outputs: `model`, `reference_model`."""
    return resolver.Resolver(
        strategy_class=ServedModelStrategy,
        candidate=candidate,
        model=Channel(type=Model),
        reference_model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
        pushed_model=Channel(type=PushedModel),
    )


class ServedModelStrategy(resolver.ResolverStrategy):
    """The model that is served besides the candidate, and the best one served so far, the reference.

    TFX's LatestBlessedModelStrategy returns the latest blessed model, pushed or not: each of a row of models that
    nobody serves would be compared with the one before, and might lose a little more. It also returns the candidate
    once that has been blessed, so that a run with nothing changed compares the model with itself and evaluates and
    pushes it again. A model that a rollback took out of service is not compared with either: somebody found it bad.
    """

    def resolve_artifacts(
        self, store: mlmd.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]] | None:
        """Resolves `model`, empty if none was ever served, and `reference_model`, empty if it is the same.

        Where none of the versions is there any more, `model` is the reference of the latest one. Models whose files are
        gone from the pipeline's folder cannot be compared with: the latest one that is there is taken.

        Args:
            store: The metadata store.
            input_dict: `candidate`: one Model; the others: all of the pipeline's, which are only looked at.
        """
        none: dict[str, list[Artifact]] = {**input_dict, "model": [], "reference_model": [], "model_blessing": []}
        models = {model.id: model for model in input_dict["model"]}
        references = _references(input_dict["model_blessing"])
        left_out = {artifact.id for artifact in input_dict["candidate"]} | withdrawn(input_dict["pushed_model"])
        pushes = [push for push in _took_place(input_dict["pushed_model"]) if _model_of(push) not in left_out]
        pushes = [push for push in reversed(pushes) if _model_of(push) in models]
        left = [push for push in pushes if _has_files(models[_model_of(push)])]
        if left[:1] != pushes[:1]:
            other = models[_model_of(left[0])].uri if left else "no model"
            gone = models[_model_of(pushes[0])].uri
            print(f"The files of the served model {gone} are gone; the candidate is compared with {other}.")
        pushes = left
        if not pushes:
            return none
        there = [push for push in pushes if _is_there(push)]
        served = _model_of((there or pushes)[0])
        reference = references.get(served, served)
        if reference not in models or reference in left_out or not _has_files(models[reference]):
            reference = served
        if not there:
            served = reference
        others = [models[reference]] if reference != served else []
        return {**none, "model": [models[served]], "reference_model": others}


def _has_files(model: Artifact) -> bool:
    """Whether a model's files are where they were written; in an object store, whether there are any."""
    folder = Path(model.uri)
    return bool(fileio.exists(model.uri)) and (not folder.is_dir() or (folder / SERVING_MODEL_FOLDER).is_dir())


def _took_place(pushed_models: Iterable[Artifact]) -> list[Artifact]:
    """The pushes and rollbacks that made a version, oldest first."""
    pushed = (artifact for artifact in pushed_models if artifact.get_int_custom_property("pushed"))
    return sorted(pushed, key=lambda artifact: artifact.id)


def _model_of(pushed: Artifact) -> int:
    return int(pushed.get_int_custom_property("current_model_id"))


def _is_there(pushed: Artifact) -> bool:
    """Whether the version still lies in the serving folder; one that does not is not served."""
    return Path(pushed.get_string_custom_property("pushed_destination")).exists()


def _references(blessings: Iterable[Artifact]) -> Mapping[int, int]:
    """The reference of each blessed model, by its latest blessing; models blessed by older versions have none."""
    return {
        blessing.get_int_custom_property("current_model_id"): blessing.get_int_custom_property(REFERENCE_PROPERTY)
        for blessing in sorted(blessings, key=lambda artifact: artifact.id)
        if blessing.get_int_custom_property("blessed") and blessing.has_custom_property(REFERENCE_PROPERTY)
    }


def withdrawn(pushed_models: Iterable[Artifact]) -> set[int]:
    """The ids of the models that a rollback took out of service and that nothing has brought back since.

    Args:
        pushed_models: All pushes and rollbacks; see components/pusher/manifest.py for their properties.
    """
    model_of: dict[int, int] = {}
    taken_out: set[int] = set()
    for artifact in _took_place(pushed_models):
        model = _model_of(artifact)
        taken_out.discard(model)
        restored = artifact.get_int_custom_property("restored_version")
        if restored:
            taken_out |= {later for version, later in model_of.items() if version > restored} - {model}
        else:
            model_of[int(artifact.get_string_custom_property("pushed_version"))] = model
    return taken_out
