"""The table of nodes, compared with the components that TFX gets."""

from __future__ import annotations

from typing import Any

import pytest
from tfx.dsl.components.common.resolver import Resolver

from contracts.errors import SettingsError
from metadata.records import QUIET_NODES
from pipeline.plan import dag, environment, fingerprint, nodes, recipe
from pipeline.plan.recipe import Recipe
from pipeline.plan.table import TABLE, Node


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    """The TFX component of each entry that the taxi recipe's pipeline can have, by name."""
    chosen, places = recipe.load("taxi", ("tflite.quantization=int8",)), environment.load("local")
    prints = fingerprint.fingerprints(chosen, places, chosen.find_inputs())
    return {component.id: component for component in dag.build(chosen, places, prints, None, None).components}


def types(channels: dict[str, Any]) -> dict[str, str]:
    return {name: channel.type_name for name, channel in channels.items()}


@pytest.mark.parametrize("entry", [node for node in TABLE if not node.looks_up], ids=lambda node: node.component)
def test_an_entry_says_what_its_component_takes_and_gives(entry: Node, built: dict[str, Any]) -> None:
    kinds = {f"{node.name}.{output}": kind for node in TABLE for output, kind in node.outputs.items()}
    component = built[entry.name]
    assert types(component.outputs) == entry.outputs
    if entry in nodes.table(recipe.load("taxi", ("tflite.quantization=int8",))).values():
        # ComponentSpec's names, which some components' own arguments differ from.
        assert sorted(types(component.inputs).values()) == sorted(kinds[source] for source in entry.inputs.values())


def test_nodes_that_look_up_are_those_that_pages_and_progress_leave_out(built: dict[str, Any]) -> None:
    quiet = {node.name for node in TABLE if node.looks_up}
    assert quiet == QUIET_NODES == {name for name, component in built.items() if isinstance(component, Resolver)}


def test_beam_does_the_work_of_those_whose_component_is_beams(built: dict[str, Any]) -> None:
    beams = {name for name, component in built.items() if hasattr(component.executor_spec, "beam_pipeline_args")}
    assert beams == set(nodes.BEAM_NODES)


@pytest.fixture
def digest_node(monkeypatch: pytest.MonkeyPatch) -> Node:
    """An extra node in the table, after the schema and before the nodes that follow it."""
    entry = Node(
        "Digest",
        component="components.data_gate:DataGate",
        inputs={
            "examples": "ExampleGen.examples",
            "schema": "SchemaGen.schema",
            "anomalies": "ExampleValidator.anomalies",
        },
        outputs={"verdict": "GateVerdict"},
        arguments=lambda _context: {"on_anomaly": "warn"},
        settings=("label",),
        packages=("pyarrow",),
    )
    longer = (*TABLE[:6], entry, *TABLE[6:])
    monkeypatch.setattr(nodes, "TABLE", longer)
    monkeypatch.setattr(nodes, "NODES", tuple(dict.fromkeys(node.name for node in longer)))
    return entry


def test_an_extra_node_in_the_table_is_everywhere(
    digest_node: Node, small: Recipe, places: environment.Environment
) -> None:
    assert nodes.graph(small)["Digest"] == ("ExampleGen", "SchemaGen", "ExampleValidator")
    assert nodes.find("digest") == "Digest"
    prints = fingerprint.fingerprints(small, places, small.find_inputs())
    assert prints["Digest"].settings == {"label": "big"}
    assert prints["Digest"].packages.keys() == {"pyarrow"}
    assert "components/data_gate.py" in prints["Digest"].code
    components = {component.id: component for component in dag.build(small, places, prints, None, None).components}
    assert components["Digest"].exec_properties[fingerprint.PROPERTY] == prints["Digest"].to_json()
    nodes.check_order("SchemaGen", "Digest", nodes.names(small))
    with pytest.raises(SettingsError, match=r"^--from Trainer comes after --to Digest; "):
        nodes.check_order("Trainer", "Digest", nodes.names(small))


def test_a_recipes_own_component_is_built_like_ours(places: environment.Environment) -> None:
    overrides = ("nodes.SampleImages.before=[Transform]", "nodes.SampleImages.params.per_class=5")
    chosen = recipe.load("cifar10", overrides)
    prints = fingerprint.fingerprints(chosen, places, chosen.find_inputs())
    components = {component.id: component for component in dag.build(chosen, places, prints, None, None).components}
    own = components["SampleImages"]
    assert (types(own.inputs), types(own.outputs)) == ({"examples": "Examples"}, {"plot": "Plot"})
    assert own.exec_properties == {"per_class": 5, fingerprint.PROPERTY: prints["SampleImages"].to_json()}
    assert {node.id for node in own.upstream_nodes} == {"ExampleGen"}
    assert own in components["Transform"].upstream_nodes
