"""Which models a candidate is compared with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import ml_metadata as mlmd
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from tfx.types import standard_artifacts

from components.baseline import ServedModelStrategy


class Models:
    """Models and their blessings in a store, as the Evaluator notes them."""

    def __init__(self, store: mlmd.MetadataStore, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.models: list[Any] = []
        self.blessings: list[Any] = []
        self.pushes: list[Any] = []

    def add(self, blessed: bool | None, reference: Any = None) -> Any:
        """Adds a model; None leaves it without an evaluation. Without a reference it is one itself."""
        saved_model = self.folder / str(len(self.models)) / "Format-Serving"
        saved_model.mkdir(parents=True)
        model = self._put(standard_artifacts.Model(), str(saved_model.parent))
        self.models.append(model)
        if blessed is not None:
            self.bless(model, blessed, reference or model)
        return model

    def bless(self, model: Any, blessed: bool, reference: Any) -> None:
        """Notes an evaluation of a model."""
        blessing = standard_artifacts.ModelBlessing()
        blessing.set_int_custom_property("blessed", int(blessed))
        blessing.set_string_custom_property("current_model", model.uri)
        blessing.set_int_custom_property("current_model_id", model.id)
        blessing.set_int_custom_property("reference_model_id", reference.id)
        self.blessings.append(self._put(blessing, f"/blessings/{len(self.blessings)}"))

    def resolve(self, candidate: Any) -> tuple[list[str], list[str]]:
        """The URIs of the baseline and of the reference."""
        resolved = ServedModelStrategy().resolve_artifacts(self.store, self.inputs(candidate))
        assert resolved is not None
        baseline, reference = ([model.uri for model in resolved[name]] for name in ("model", "reference_model"))
        return baseline, reference

    def inputs(self, candidate: Any) -> dict[str, list[Any]]:
        """What the resolver is given."""
        of_all = {
            "model": self.models,
            "reference_model": self.models,
            "model_blessing": self.blessings,
            "pushed_model": self.pushes,
        }
        return {"candidate": [candidate], **of_all}

    def push(self, model: Any, restored: int | None = None, destination: Path | None = None) -> int:
        """Notes a push of a model, or a rollback to a version, and returns the new version."""
        version = len(self.pushes) + 1
        pushed = standard_artifacts.PushedModel()
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("pushed_version", str(version))
        pushed.set_int_custom_property("current_model_id", model.id)
        if destination is not None:
            pushed.set_string_custom_property("pushed_destination", str(destination))
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
    return Models(mlmd.MetadataStore(connection), tmp_path / "models")


def test_the_first_candidate_has_no_baseline(models: Models) -> None:
    assert models.resolve(models.add(blessed=None)) == ([], [])


def test_a_model_that_was_blessed_and_never_pushed_is_no_baseline(models: Models) -> None:
    models.add(blessed=True)
    assert models.resolve(models.add(blessed=None)) == ([], [])
    served = models.add(blessed=True)
    models.push(served)
    models.add(blessed=True)
    assert models.resolve(models.add(blessed=None)) == ([served.uri], [])


def test_the_baseline_is_the_latest_push(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    models.push(second)
    models.push(first)
    assert models.resolve(models.add(blessed=None)) == ([first.uri], [])


def test_a_served_candidate_is_compared_with_what_was_served_before_it(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    models.push(first)
    assert models.resolve(first) == ([], [])
    models.push(second)
    assert models.resolve(second) == ([first.uri], [])


def test_the_reference_is_a_second_baseline_where_it_is_another_model(models: Models) -> None:
    best = models.add(blessed=True)
    worse = models.add(blessed=True, reference=best)
    models.push(best)
    models.push(worse)
    candidate = models.add(blessed=None)
    assert models.resolve(candidate) == ([worse.uri], [best.uri])
    better = models.add(blessed=True, reference=None)
    models.push(better)
    assert models.resolve(candidate) == ([better.uri], [])


def test_the_latest_blessing_of_the_served_model_names_the_reference(models: Models) -> None:
    best, served = models.add(blessed=True), models.add(blessed=True)
    models.push(served)
    models.bless(served, True, reference=best)
    models.bless(served, False, reference=served)
    assert models.resolve(models.add(blessed=None)) == ([served.uri], [best.uri])


def test_where_no_version_is_there_any_more_the_best_is_the_baseline(models: Models, tmp_path: Path) -> None:
    best = models.add(blessed=True)
    worse = models.add(blessed=True, reference=best)
    for version, model in enumerate((best, worse), start=1):
        (tmp_path / "serving" / str(version)).mkdir(parents=True)
        models.push(model, destination=tmp_path / "serving" / str(version))
    candidate = models.add(blessed=None)
    assert models.resolve(candidate) == ([worse.uri], [best.uri])
    (tmp_path / "serving" / "2").rmdir()
    assert models.resolve(candidate) == ([best.uri], [])
    (tmp_path / "serving" / "1").rmdir()
    assert models.resolve(candidate) == ([best.uri], [])


def test_models_whose_files_are_gone_are_no_baseline_and_no_reference(
    models: Models, capsys: pytest.CaptureFixture[str]
) -> None:
    best, older = models.add(blessed=True), models.add(blessed=True)
    served = models.add(blessed=True, reference=best)
    for model in (best, older, served):
        models.push(model)
    candidate = models.add(blessed=None)
    shutil.rmtree(best.uri)
    assert models.resolve(candidate) == ([served.uri], [])
    assert capsys.readouterr().out == ""
    shutil.rmtree(Path(served.uri, "Format-Serving"))
    assert models.resolve(candidate) == ([older.uri], [])
    gone = f"The files of the served model {served.uri} are gone; the candidate is compared with"
    assert capsys.readouterr().out == f"{gone} {older.uri}.\n"
    shutil.rmtree(older.uri)
    assert models.resolve(candidate) == ([], [])
    assert capsys.readouterr().out == f"{gone} no model.\n"


def test_the_candidate_is_handed_on(models: Models) -> None:
    candidate = models.add(blessed=None)
    models.push(models.add(blessed=True))
    resolved = ServedModelStrategy().resolve_artifacts(models.store, models.inputs(candidate))
    assert resolved is not None
    assert (resolved["candidate"], resolved["pushed_model"]) == ([candidate], models.pushes)


def test_after_a_rollback_the_baseline_is_what_is_served(models: Models) -> None:
    first, second, third = (models.add(blessed=True) for _ in range(3))
    candidate = models.add(blessed=None)
    version = models.push(first)
    models.push(second)
    models.push(third)
    assert models.resolve(candidate) == ([third.uri], [])
    models.push(first, restored=version)
    assert models.resolve(candidate) == ([first.uri], [])


def test_a_reference_that_was_rolled_back_from_is_none(models: Models) -> None:
    first, bad = models.add(blessed=True), models.add(blessed=True)
    after_it = models.add(blessed=True, reference=bad)
    version = models.push(first)
    models.push(bad)
    later = models.push(after_it)
    models.push(first, restored=version)
    models.push(after_it, restored=later)
    assert models.resolve(models.add(blessed=None)) == ([after_it.uri], [])


def test_a_model_that_was_brought_back_is_a_baseline_again(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    candidate = models.add(blessed=None)
    one, two = models.push(first), models.push(second)
    models.push(first, restored=one)
    models.push(second, restored=two)
    assert models.resolve(candidate) == ([second.uri], [])
    assert models.resolve(second) == ([first.uri], [])


def test_a_push_that_did_not_happen_says_nothing_of_baselines(models: Models) -> None:
    first, second = models.add(blessed=True), models.add(blessed=True)
    models.push(first)
    refused = standard_artifacts.PushedModel()
    refused.set_int_custom_property("pushed", 0)
    refused.set_int_custom_property("current_model_id", second.id)
    models.pushes.append(models._put(refused, "/pushed/none"))
    assert models.resolve(models.add(blessed=None)) == ([first.uri], [])
