"""The names of the nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import nodes, recipe


@pytest.mark.parametrize("written", ["Trainer", "trainer", "TRAINER"])
def test_a_node_is_found_in_any_case(written: str) -> None:
    assert nodes.find(written) == "Trainer"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("trainr", "no node named 'trainr'. Did you mean Trainer?"),
        ("statistics", "no node named 'statistics'. Did you mean StatisticsGen?"),
        ("zzz", f"no node named 'zzz'. There are: {', '.join(nodes.NODES)}."),
    ],
)
def test_an_unknown_node_gets_the_nearest_name_or_all_names(written: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        nodes.find(written)
    assert str(caught.value) == message


@pytest.mark.parametrize(("quantization", "present"), [("none", False), ("float16", True)])
def test_the_tf_lite_node_is_there_where_it_is_asked_for(project: Path, quantization: str, present: bool) -> None:
    small = recipe.load("small", [f"tflite.quantization={quantization}"])
    assert [node for node in nodes.NODES if node not in nodes.names(small)] == ([] if present else ["TFLite"])
    nodes.check_present(small, None, "Trainer", *(["TFLite"] if present else []))


def test_a_node_that_the_recipe_does_not_ask_for_is_explained(project: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        nodes.check_present(recipe.load("small"), "TFLite", None)
    assert str(caught.value) == (
        "the pipeline of small has no node TFLite: tflite.quantization is none.\n"
        "Ask for it in recipe.yaml or with `--set tflite.quantization=int8`."
    )


def test_a_partial_run_goes_forward() -> None:
    nodes.check_order("Transform", "Trainer")
    nodes.check_order("Trainer", "Trainer")
    nodes.check_order("Trainer", None)
    with pytest.raises(SettingsError, match=r"^--from Pusher comes after --to Trainer; the order is ExampleGen, "):
        nodes.check_order("Pusher", "Trainer")
