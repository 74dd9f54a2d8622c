"""The Trainer component: what it tells `run_fn`, and what comes out."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tfx.components.trainer.executor import GenericExecutor
from tfx.types import Channel, standard_artifacts
from tiny_artifacts import Tiny
from tiny_recipe import EVAL

from components.trainer import export
from components.trainer.component import Executor, Trainer
from components.trainer.job import Job
from components.trainer.settings import TrainerSettings
from components.trainer.train import class_names_of
from contracts import model_card

CONFIG = {"model_module": "tiny_recipe", "label": "big", "trainer": {"epochs": 1, "batch_size": 30}}


def component(raw: bool) -> Trainer:
    examples = Channel(type=standard_artifacts.Examples)
    return Trainer(
        run_fn="components.trainer.run.run_fn",
        examples=examples,
        transform_graph=Channel(type=standard_artifacts.TransformGraph),
        custom_config=CONFIG,
        raw_examples=examples if raw else None,
    )


@pytest.mark.parametrize("raw", [True, False])
def test_raw_examples_are_an_input_that_may_be_left_out(raw: bool) -> None:
    trainer = component(raw)
    assert trainer.id == "Trainer"
    assert set(trainer.inputs) == {"examples", "transform_graph"} | ({"raw_examples"} if raw else set())
    assert set(trainer.outputs) == {"model", "model_run"}
    assert json.loads(trainer.exec_properties["custom_config"]) == CONFIG


@pytest.mark.parametrize(
    ("raw", "names"), [(False, None), (True, None), (True, ["cat", "dog"])], ids=["no rows", "rows", "named classes"]
)
def test_run_fn_is_told_of_the_raw_rows(
    examples: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, raw: bool, names: list[str] | None
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(GenericExecutor, "Do", lambda self, inputs, outputs, properties: told.append(properties))
    artifact = examples(train=EVAL, eval=EVAL[:3])
    if names:
        artifact.set_string_custom_property("class_names", json.dumps(names))
    properties = dict(component(raw).exec_properties)
    Executor().Do({"raw_examples": [artifact]} if raw else {}, {}, properties)
    [found] = told
    config = json.loads(found.pop("custom_config"))
    known: dict[str, Any] = {}
    if raw:
        known["raw_eval_files"] = [str(Path(artifact.uri, "Split-eval", "data_tfrecord-00000-of-00001.gz"))]
    if names:
        known["class_names"] = names
    assert config == CONFIG | known
    assert found == {name: value for name, value in properties.items() if name != "custom_config"}


def test_a_trained_model_has_its_card_its_warm_up_and_its_class_names(tiny: Tiny, artifact: Callable[..., Any]) -> None:
    raw = standard_artifacts.Examples()
    raw.uri, raw.split_names = tiny.inputs["examples"][0].uri, tiny.inputs["examples"][0].split_names
    raw.set_string_custom_property("class_names", json.dumps(["small", "big"]))
    graph = standard_artifacts.TransformGraph()
    graph.uri = tiny.graph
    model = artifact(standard_artifacts.Model)
    inputs = {"examples": [tiny.transformed], "transform_graph": [graph], "raw_examples": [raw]}
    outputs = {"model": [model], "model_run": [artifact(standard_artifacts.ModelRun)]}
    Executor().Do(inputs, outputs, dict(component(raw=True).exec_properties))
    folder = Path(model.uri, "Format-Serving")
    found = model_card.read_card(folder)
    assert found.training["settings"] == TrainerSettings.model_validate(CONFIG["trainer"]).model_dump(mode="json")
    assert found.training["precision"] in {"float32", "mixed_bfloat16", "mixed_float16"}
    assert (found.training["epochs"], found.training["steps_per_epoch"]) == (1, 4)
    assert 0 < (found.validation_metrics["loss"] or 0) < 10
    assert found.class_names == ["small", "big"]
    assert (folder / export.LABELS).read_text() == "small\nbig\n"
    # Of serving_default, predict and classify, each with one row and with many.
    assert len(list(tf.data.TFRecordDataset(str(folder / export.WARM_UP_REQUESTS)))) == 6


def test_a_recipe_names_the_classes_where_the_data_do_not() -> None:
    recipe = types.ModuleType("model")
    recipe.CLASS_NAMES = ("cat", "dog")  # type: ignore[attr-defined]
    job = Job.model_construct(class_names=None)
    assert class_names_of(recipe, job) == ["cat", "dog"]
    assert class_names_of(recipe, Job.model_construct(class_names=["a", "b"])) == ["a", "b"]
    assert class_names_of(types.ModuleType("bare"), job) is None
