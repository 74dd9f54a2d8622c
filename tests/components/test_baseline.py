"""Which model a candidate is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_metadata as mlmd
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from tfx.types import standard_artifacts

from components.baseline import LatestOtherBlessedModelStrategy


class Models:
    """Models and their blessings in a store, as the Evaluator notes them."""

    def __init__(self, store: mlmd.MetadataStore) -> None:
        self.store = store
        self.models: list[Any] = []
        self.blessings: list[Any] = []
        self.pushes: list[Any] = []

    def add(self, blessed: bool | None) -> Any:
        """Adds a model; None leaves it without an evaluation."""
        model = self._put(standard_artifacts.Model(), f"/models/{len(self.models)}")
        self.models.append(model)
        if blessed is not None:
            blessing = standard_artifacts.ModelBlessing()
            blessing.set_int_custom_property("blessed", int(blessed))
            blessing.set_string_custom_property("current_model", model.uri)
            blessing.set_int_custom_property("current_model_id", model.id)
            self.blessings.append(self._put(blessing, f"/blessings/{model.id}"))
        return model

    def resolve(self, candidate: Any) -> list[str]:
        """The URIs of the baseline."""
        found = LatestOtherBlessedModelStrategy().resolve_artifacts(self.store, self.inputs(candidate))
        return [] if found is None else [model.uri for model in found["model"]]

    def inputs(self, candidate: Any) -> dict[str, list[Any]]:
        """What the resolver is given."""
        of_all = {"model": self.models, "model_blessing": self.blessings, "pushed_model": self.pushes}
        return {"candidate": [candidate], **of_all}

    def push(self, model: Any, restored: int | None = None) -> int:
        """Notes a push of a model, or a rollback to a version, and returns the new version."""
        version = len(self.pushes) + 1
        pushed = standard_artifacts.PushedModel()
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("pushed_version", str(version))
        pushed.set_int_custom_property("current_model_id", model.id)
        if restored is not None:
            pushed.set_int_custom_property("restored_version", restored)
        self.pushes.append(self._put(pushed, f"/pushed/{version}"))
        return version

    def _put(self, artifact: Any, uri: str) -> Any:
        artifact.uri = uri
        artifact.mlmd_artifact.type_id = self.store.put_artifact_type(artifact.artifact_type)
        [artifact.id] = self.store.put_artifacts([artifact.mlmd_artifact])
        return artifact


@pytest.fixture
def models(tmp_path: Path) -> Models:
    connection = mlmd_pb2.ConnectionConfig()
    connection.sqlite.filename_uri = str(tmp_path / "metadata.sqlite")
    return Models(mlmd.MetadataStore(connection))


def test_the_first_candidate_has_no_baseline(models: Models) -> None:
    assert models.resolve(models.add(blessed=None)) == []


def test_the_latest_blessed_model_is_the_baseline(models: Models) -> None:
    models.add(blessed=True)
    latest = models.add(blessed=True)
    assert models.resolve(models.add(blessed=None)) == [latest.uri]


def test_a_refused_model_is_passed_over(models: Models) -> None:
    good = models.add(blessed=True)
    models.add(blessed=False)
    models.add(blessed=None)
    assert models.resolve(models.add(blessed=None)) == [good.uri]


def test_a_candidate_that_was_blessed_before_is_not_its_own_baseline(models: Models) -> None:
    earlier = models.add(blessed=True)
    candidate = models.add(blessed=True)
    assert models.resolve(candidate) == [earlier.uri]


def test_a_candidate_alone_has_no_baseline_even_once_blessed(models: Models) -> None:
    assert models.resolve(models.add(blessed=True)) == []


def test_the_candidate_is_handed_on(models: Models) -> None:
    models.add(blessed=True)
    candidate = models.add(blessed=None)
    models.push(candidate)
    found = LatestOtherBlessedModelStrategy().resolve_artifacts(models.store, models.inputs(candidate))
    assert found is not None
    assert (found["candidate"], found["pushed_model"]) == ([candidate], models.pushes)


def test_after_a_rollback_the_baseline_is_what_is_served(models: Models) -> None:
    first, second, third = (models.add(blessed=True) for _ in range(3))
    candidate = models.add(blessed=None)
    version = models.push(first)
    models.push(second)
    models.push(third)
    assert models.resolve(candidate) == [third.uri]
    models.push(first, restored=version)
    assert models.resolve(candidate) == [first.uri]


def test_a_model_that_was_brought_back_is_a_baseline_again(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    candidate = models.add(blessed=None)
    one, two = models.push(first), models.push(second)
    models.push(first, restored=one)
    models.push(second, restored=two)
    assert models.resolve(candidate) == [second.uri]
    assert models.resolve(second) == [first.uri]


def test_a_push_that_did_not_happen_says_nothing_of_baselines(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    models.push(first)
    refused = standard_artifacts.PushedModel()
    refused.set_int_custom_property("pushed", 0)
    refused.set_int_custom_property("current_model_id", second.id)
    models.pushes.append(models._put(refused, "/pushed/none"))
    assert models.resolve(models.add(blessed=None)) == [second.uri]
