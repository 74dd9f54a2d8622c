"""A recipe's own nodes: where they are placed, how they are cached, and how mistakes in them are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from contracts.errors import SettingsError
from pipeline.plan import fingerprint, nodes, recipe
from pipeline.plan.component_source import ComponentSource, Interface
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import KubeflowSettings

COMPONENTS = '''
from typing import List, Optional, TypedDict

from tfx import types
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base import base_component
from tfx.types import component_spec, standard_artifacts
from tfx.types.standard_artifacts import Examples, ExampleStatistics

from recipes.small.elsewhere import Imported
from recipes.small.helper import helped


class Drawing(types.Artifact):
    TYPE_NAME = "DrawingOfSmall"


class Found(TypedDict):
    rows: int
    words: Optional[str]
    more: dict


@component
def DataPlot(
    statistics: InputArtifact[ExampleStatistics],
    drawing: OutputArtifact[Drawing],
    column: Parameter[str],
    bins: Parameter[int] = 10,
) -> Found:
    """Draws."""
    return {"rows": 1, "words": None, "more": {}}


@component(use_beam=True)
def Check(rows: int, all_examples: InputArtifact[List[standard_artifacts.Examples]] = None):
    pass


def plain(statistics):
    pass


class SentSpec(component_spec.ComponentSpec):
    PARAMETERS = {"to": component_spec.ExecutionParameter(type=str)}
    INPUTS = {"drawing": component_spec.ChannelParameter(type=Drawing)}
    OUTPUTS = {"note": component_spec.ChannelParameter(type=standard_artifacts.String)}


class Sent(base_component.BaseComponent):
    SPEC_CLASS = SentSpec

    def __init__(self, drawing, to, polite=True):
        pass
'''
NODES = """
nodes:
  DataPlot:
    inputs: {statistics: StatisticsGen.statistics}
    params: {column: fare}
"""


@pytest.fixture
def own(project: Path) -> Path:
    """The folder of the recipe `small`, with a node of its own."""
    folder = project / "recipes" / "small"
    (folder / "components.py").write_text(COMPONENTS)
    (folder / "helper.py").write_text("def helped():\n    pass\n")
    (folder / "elsewhere.py").write_text("Imported = None\n")
    with (folder / "recipe.yaml").open("a") as file:
        file.write(NODES)
    return folder


def test_what_a_components_source_says(own: Path) -> None:
    source = ComponentSource(own / "components.py")
    assert source.interface("DataPlot") == Interface(
        inputs={"statistics": "ExampleStatistics"},
        outputs={"drawing": "DrawingOfSmall", "rows": "Integer", "words": "String", "more": "JsonValue"},
        parameters={"column", "bins"},
        required={"statistics", "column"},
    )
    assert source.interface("Check") == Interface(
        inputs={"rows": "Integer", "all_examples": "Examples"}, required={"rows"}, uses_beam=True
    )
    assert source.interface("Sent") == Interface(
        inputs={"drawing": "DrawingOfSmall", "polite": ""},
        outputs={"note": "String"},
        parameters={"to", "polite"},
        required={"drawing", "to"},
    )
    assert source.interface("Imported") is None


def test_it_stands_where_its_inputs_are_ready(own: Path) -> None:
    names = nodes.names(recipe.load("small"))
    assert names[:3] == ("ExampleGen", "StatisticsGen", "DataPlot")
    assert [name for name in names if name != "DataPlot"] == [name for name in nodes.NODES if name != "TFLite"]
    assert nodes.graph(recipe.load("small"))["DataPlot"] == ("StatisticsGen",)
    assert nodes.all_names("small") == (*nodes.NODES[:2], "DataPlot", *nodes.NODES[2:])
    assert nodes.find("dataplot", recipe.load("small").settings.nodes) == "DataPlot"


def test_one_takes_from_another_and_others_wait_for_it(own: Path) -> None:
    chain = recipe.load(
        "small",
        (
            "nodes.Gate={component: Check, inputs: {rows: DataPlot.rows}, before: [Transform]}",
            "nodes.Sent={inputs: {drawing: DataPlot.drawing}, after: [Pusher], params: {to: me}}",
        ),
    )
    graph = nodes.graph(chain)
    assert graph["Gate"] == ("DataPlot",)
    assert graph["Transform"] == ("ExampleGen", "SchemaGen", "DataGate", "Gate")
    assert list(graph)[:4] == ["ExampleGen", "StatisticsGen", "DataPlot", "Gate"]
    assert list(graph)[-1] == "Sent"
    assert nodes.taken_over(chain, "Gate") == [
        *("ExampleGen", "StatisticsGen", "DataPlot", "SchemaGen", "ExampleValidator", "DataGate")
    ]
    assert nodes.table(chain)["Gate"].uses_beam
    with pytest.raises(SettingsError, match=r"^--from Trainer comes after --to Gate; the order is ExampleGen, "):
        nodes.check_order("Trainer", "Gate", nodes.names(chain))


def prints(places: Environment, *overrides: str) -> dict[str, fingerprint.Fingerprint]:
    small = recipe.load("small", overrides)
    return fingerprint.fingerprints(small, places, small.find_inputs())


def test_it_runs_again_where_its_code_settings_or_packages_change_and_nothing_else_does(
    own: Path, places: Environment
) -> None:
    before = prints(places)
    assert before["DataPlot"].settings == {
        "nodes.DataPlot.component": None,
        "nodes.DataPlot.inputs.statistics": "StatisticsGen.statistics",
        "nodes.DataPlot.params.column": "fare",
    }
    assert {"recipes/small/components.py", "recipes/small/helper.py"} <= before["DataPlot"].code.keys()

    def changed(*overrides: str) -> set[str]:
        now = prints(places, *overrides)
        return {node for node in before if before[node] != now[node]}

    assert changed() == set()
    assert changed("nodes.DataPlot.params.column=tips") == {"DataPlot"}
    assert changed("nodes.DataPlot.packages=[numpy]") == {"DataPlot"}
    assert changed("nodes.DataPlot.before=[Trainer]", "trainer.epochs=2") == {"Trainer"}
    (own / "helper.py").write_text("def helped():\n    return 1\n")
    assert changed() == {"DataPlot"}


MISTAKES = [
    ({"DataPlt": {}}, "DataPlt: recipes/small/components.py has no component DataPlt. Did you mean DataPlot?"),
    (
        {"plot": {"component": "DataPlot"}},
        "plot: received the name 'plot', expected a capital, then letters and digits.",
    ),
    ({"Trainer": {}}, "Trainer: the name Trainer is taken; choose another."),
    ({"CloseRun": {}}, "CloseRun: the name CloseRun is taken; choose another."),
    (
        {"A": {"component": "plain"}},
        "A.component: {folder}/components.py:41: plain is a plain function. Make it a component: put TFX's @component "
        "above it.",
    ),
    (
        {"Imported": {}},
        "Imported: recipes/small/components.py does not say itself what Imported takes and gives; name its outputs "
        "here: `outputs: {name: ArtifactType}`, or `outputs: {}`.",
    ),
    (
        {"DataPlot": {"outputs": {}, "inputs": {"statistics": "StatisticsGen.statistics"}, "params": {"column": "a"}}},
        "DataPlot.outputs: recipes/small/components.py says itself what DataPlot gives; take this out.",
    ),
    ({"Check": {}}, "Check.inputs: Check needs 'rows'."),
    (
        {"Check": {"inputs": {"rows": "StatisticsGen"}}},
        "Check.inputs.rows: received 'StatisticsGen', expected Node.output, such as StatisticsGen.statistics.",
    ),
    (
        {"Check": {"inputs": {"rows": "Statistics.statistics"}}},
        "Check.inputs.rows: no node named 'Statistics'. Did you mean StatisticsGen?",
    ),
    (
        {"Check": {"inputs": {"rows": "StatisticsGen.statistic"}}},
        "Check.inputs.rows: StatisticsGen has no output 'statistic'. Did you mean statistics?",
    ),
    (
        {"Check": {"inputs": {"rows": "StatisticsGen.statistics"}}},
        "Check.inputs.rows: takes Integer, and StatisticsGen.statistics is ExampleStatistics.",
    ),
    (
        {"Check": {"inputs": {"rows": "TFLite.tflite_model"}}},
        "Check.inputs.rows: the pipeline has no node TFLite: tflite.quantization is none. Ask for it in recipe.yaml or "
        "with `--set tflite.quantization=int8`.",
    ),
    (
        {"Sent": {"inputs": {"drawing": "Sent.note"}, "params": {"to": "me"}}},
        "Sent.inputs.drawing: a node cannot wait for itself.",
    ),
    (
        {"Imported": {"outputs": {}, "after": ["trainer"]}},
        "Imported.after: no node named 'trainer'. Did you mean Trainer?",
    ),
    ({"Imported": {"outputs": {}, "packages": ["nix-da"]}}, "Imported.packages: no package 'nix-da' is installed."),
]


@pytest.mark.parametrize(("own_nodes", "mistake"), MISTAKES, ids=[row[1].partition(" ")[0] for row in MISTAKES])
def test_mistakes_are_named_with_their_line(own: Path, own_nodes: dict[str, object], mistake: str) -> None:
    text = (own / "recipe.yaml").read_text().partition("\nnodes:")[0]
    (own / "recipe.yaml").write_text(f"{text}\n{yaml.safe_dump({'nodes': own_nodes})}")
    with pytest.raises(SettingsError) as caught:
        nodes.names(recipe.load("small"))
    # If its key is not written, the nearest parent is named.
    key = mistake.partition(":")[0].rpartition(".")[2]
    lines = (own / "recipe.yaml").read_text().splitlines()
    written = [number for number, line in enumerate(lines, 1) if line.strip().startswith(f"{key}:")]
    [name] = own_nodes
    line = written[0] if written else lines.index(f"  {name}:" if own_nodes[name] else f"  {name}: {{}}") + 1
    assert caught.value.what == f"{own}/recipe.yaml:{line}: nodes.{mistake.replace('{folder}', str(own))}"


def test_nodes_that_wait_for_each_other(own: Path) -> None:
    with pytest.raises(SettingsError, match=r"recipe.yaml:\d+: nodes wait for each other: .*DataPlot -> "):
        nodes.names(recipe.load("small", ("nodes.DataPlot.after=[Pusher]", "nodes.DataPlot.before=[Trainer]")))


def test_types_as_text_are_refused(own: Path) -> None:
    path = own / "components.py"
    path.write_text("from __future__ import annotations\n" + COMPONENTS)
    with pytest.raises(SettingsError, match="DataPlot has its types as text, because of `from __future__ import"):
        nodes.names(recipe.load("small"))


def test_a_recipe_without_the_file(own: Path) -> None:
    (own / "components.py").unlink()
    with pytest.raises(SettingsError, match=r"recipes/small/components.py does not exist, in which"):
        nodes.names(recipe.load("small"))


def test_an_environment_may_give_it_resources(own: Path) -> None:
    places = {"namespace": "ml", "service_account": "runner", "volumes": [{"claim": "shared", "path": "/shared"}]}
    whole = {"host": "http://kfp", "image": "millrace:1", "nodes": {"DataPlot": {"memory": "3Gi"}}} | places
    assert KubeflowSettings.model_validate(whole).task("DataPlot").memory == "3Gi"
    with pytest.raises(ValueError, match="received settings for 'DataPlt', which is no node"):
        KubeflowSettings.model_validate(whole | {"nodes": {"DataPlt": {}}})
