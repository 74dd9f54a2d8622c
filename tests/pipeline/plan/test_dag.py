"""The pipeline as TFX will run it: the compiled DAG of the taxi recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.compiler.constants import PIPELINE_RUN_ID_PARAMETER_NAME

from components.example_gen import files
from pipeline.plan import dag, fingerprint, nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint
from pipeline.plan.project import ENGINE

Compiled = tuple[Any, dict[str, Fingerprint]]


@pytest.fixture(scope="module")
def places_of_module(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("places")
    paths = {name: folder / name for name in ("pipeline_root", "serving_root", "log_root")}
    return Environment(metadata_store={"sqlite": folder / "metadata.sqlite"}, **paths)


def compiled(places: Environment, *overrides: str, enable_cache: bool = True) -> Compiled:
    taxi = recipe.load("taxi", overrides)
    prints = fingerprint.fingerprints(taxi, places, files.resolve(taxi.settings.data, ENGINE))
    return Compiler().compile(dag.build(taxi, places, prints, None, None, enable_cache)), prints


@pytest.fixture(scope="module")
def taxi(places_of_module: Environment) -> Compiled:
    return compiled(places_of_module)


def by_id(taxi: Compiled) -> dict[str, Any]:
    return {node.pipeline_node.node_info.id: node.pipeline_node for node in taxi[0].nodes}


def properties(node: Any) -> dict[str, Any]:
    parameters = node.parameters.parameters
    values = {name: value.field_value for name, value in parameters.items() if value.HasField("field_value")}
    return {name: getattr(value, value.WhichOneof("value")) for name, value in values.items()}


TFLITE = "tflite.quantization=int8_with_float_fallback"


@pytest.mark.parametrize(("overrides", "absent"), [((), {"TFLite"}), ((TFLITE,), set())])
def test_the_nodes_are_those_that_users_can_name_in_the_same_order(
    places: Environment, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], absent: set[str]
) -> None:
    taxi = recipe.load("taxi", overrides)
    prints = fingerprint.fingerprints(taxi, places, files.resolve(taxi.settings.data, ENGINE))
    # TFX's Pipeline would sort them.
    monkeypatch.setattr(dag.tfx_pipeline, "Pipeline", lambda **arguments: arguments["components"])
    names = [node.id for node in dag.build(taxi, places, prints, None, None)]
    assert names == [node for node in nodes.NODES if node not in absent] == list(nodes.names(taxi))


def upstream(taxi: Compiled) -> dict[str, set[str]]:
    return {node: set(pipeline_node.upstream_nodes) for node, pipeline_node in by_id(taxi).items()}


def drawn(*overrides: str) -> dict[str, set[str]]:
    """The graph that a run's page draws without TFX."""
    return {node: set(upstream_nodes) for node, upstream_nodes in nodes.graph(recipe.load("taxi", overrides)).items()}


def test_every_node_comes_after_those_it_needs_and_the_drawn_graph_is_the_real_one(taxi: Compiled) -> None:
    assert upstream(taxi) == drawn()
    for node, needed in drawn().items():
        assert all(nodes.NODES.index(other) < nodes.NODES.index(node) for other in needed)


def test_a_schema_that_is_not_curated_comes_from_the_statistics(
    places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe.Recipe, "curated_schema", None)
    assert upstream(compiled(places)) == drawn()
    assert drawn()["SchemaGen"] == {"StatisticsGen"}


def test_a_tf_lite_model_is_made_of_the_blessed_model_and_pushed_with_it(places_of_module: Environment) -> None:
    taxi = compiled(places_of_module, TFLITE, "tflite.representative_rows=9")
    pipeline_nodes = by_id(taxi)
    assert upstream(taxi) == drawn(TFLITE)
    assert "TFLite" in drawn(TFLITE)["Pusher"]
    assert set(pipeline_nodes["TFLite"].inputs.inputs) == {
        "model",
        "model_blessing",
        "transformed_examples",
        "transform_graph",
    }
    tflite = properties(pipeline_nodes["TFLite"])
    assert (tflite["name"], tflite["label"]) == ("taxi", "big_tip")
    assert json.loads(tflite["settings"])["representative_rows"] == 9
    assert tflite[fingerprint.PROPERTY] == taxi[1]["TFLite"].to_json()
    assert set(pipeline_nodes["Pusher"].inputs.inputs) == {"model", "model_blessing", "infra_blessing", "tflite_model"}


def test_without_a_tf_lite_model_the_pusher_has_no_such_input(taxi: Compiled) -> None:
    assert set(by_id(taxi)["Pusher"].inputs.inputs) == {"model", "model_blessing", "infra_blessing"}


def test_every_fingerprint_is_a_part_of_its_nodes_cache_key(taxi: Compiled) -> None:
    pipeline_nodes, prints = by_id(taxi), taxi[1]
    assert set(pipeline_nodes) - set(prints) == {nodes.BASELINE_NODE}
    for node, wanted in prints.items():
        assert properties(pipeline_nodes[node])[fingerprint.PROPERTY] == wanted.to_json(), node


def test_settings_reach_their_nodes(places_of_module: Environment) -> None:
    overrides = ("gate.on_anomaly=warn", "pusher.keep_versions=2", "trainer.batch_size=7", "data.split_by=company")
    pipeline_nodes = by_id(compiled(places_of_module, *overrides, "infra_validator.rows=3"))
    assert properties(pipeline_nodes["Evaluator"])["sampled_rows"] == 3
    assert json.loads(properties(pipeline_nodes["InfraValidator"])["settings"])["rows"] == 3
    assert properties(pipeline_nodes["InfraValidator"])["name"] == "taxi"
    assert properties(pipeline_nodes["DataGate"])["on_anomaly"] == "warn"
    assert properties(pipeline_nodes["Pusher"])["keep_versions"] == 2
    assert properties(pipeline_nodes["Pusher"])["base_directory"] == str(places_of_module.serving_root / "taxi")
    custom = json.loads(properties(pipeline_nodes["Trainer"])["custom_config"])
    assert (custom["trainer"]["batch_size"], custom["label"]) == (7, "big_tip")
    assert custom["model_module"] == "recipes.taxi.model"
    assert json.loads(properties(pipeline_nodes["ExampleGen"])["settings"])["split_by"] == "company"
    assert properties(pipeline_nodes["Transform"])["preprocessing_fn"] == "recipes.taxi.features.preprocessing_fn"


def test_the_pusher_knows_its_run_and_so_is_never_cached(taxi: Compiled) -> None:
    run_id = by_id(taxi)["Pusher"].parameters.parameters["run_id"]
    assert run_id.runtime_parameter.name == PIPELINE_RUN_ID_PARAMETER_NAME


def test_without_the_cache_every_node_runs(taxi: Compiled, places_of_module: Environment) -> None:
    forced = by_id(compiled(places_of_module, enable_cache=False))
    for node, cached in by_id(taxi).items():
        if node != nodes.BASELINE_NODE:
            assert cached.execution_options.caching_options.enable_cache, node
            assert not forced[node].execution_options.caching_options.enable_cache, node


def test_a_recipe_without_a_schema_infers_one(project: Path, places: Environment) -> None:
    (project / "schemas" / "small" / "schema.pbtxt").unlink()
    small = recipe.load("small")
    prints = fingerprint.fingerprints(small, places, files.resolve(small.settings.data, project))
    components = {node.id: node for node in dag.build(small, places, prints, None, None).components}
    assert set(components["SchemaGen"].inputs) == {"statistics"}
    assert set(components) == set(nodes.names(small))


def test_the_pipeline_is_kept_where_the_environment_says(taxi: Compiled, places_of_module: Environment) -> None:
    intermediate = taxi[0]
    assert intermediate.pipeline_info.id == "taxi"
    root = intermediate.runtime_spec.pipeline_root.runtime_parameter.default_value
    assert root.string_value == str(places_of_module.pipeline_root / "taxi")
