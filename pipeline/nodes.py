"""The names of a pipeline's nodes."""

from __future__ import annotations

import difflib

from components.errors import SettingsError
from pipeline.recipe import Recipe

BASELINE_NODE = "BaselineModel"
"""Looks up the model to compare with; it does no work of its own and is never cached."""

TFLITE_NODE = "TFLite"
"""Only where the recipe asks for a TF Lite model."""

INFRA_NODE = "InfraValidator"
"""Tries the blessed model in the code of the model server."""

PUSHER_NODE = "Pusher"
"""Never cached: what it does depends on what is served."""

BEAM_NODES = ("ExampleGen", "StatisticsGen", "Transform", "Evaluator")
"""Those whose work is Beam's, wherever the environment has it done."""

NODES = (
    "ExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "DataGate",
    "Transform",
    "Trainer",
    BASELINE_NODE,
    "Evaluator",
    TFLITE_NODE,
    INFRA_NODE,
    PUSHER_NODE,
)
"""In the order of the data flow, as `pipeline.dag.build` chains them."""

UPSTREAM: dict[str, tuple[str, ...]] = {
    "ExampleGen": (),
    "StatisticsGen": ("ExampleGen",),
    "SchemaGen": (),
    "ExampleValidator": ("StatisticsGen", "SchemaGen"),
    "DataGate": ("ExampleGen", "SchemaGen", "ExampleValidator"),
    "Transform": ("ExampleGen", "SchemaGen", "DataGate"),
    "Trainer": ("ExampleGen", "Transform"),
    BASELINE_NODE: ("Trainer",),
    "Evaluator": ("ExampleGen", "Trainer", BASELINE_NODE),
    TFLITE_NODE: ("Transform", "Trainer", "Evaluator"),
    INFRA_NODE: ("Trainer", "Evaluator"),
    PUSHER_NODE: ("Trainer", "Evaluator", TFLITE_NODE, INFRA_NODE),
}
"""What each takes from, of a recipe with a curated schema and a TF Lite model; see `graph`."""


def of(recipe: Recipe) -> tuple[str, ...]:
    """The nodes of a recipe's pipeline, in the order of the data flow."""
    return tuple(node for node in NODES if node != TFLITE_NODE or recipe.settings.tflite.quantization != "none")


def graph(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The nodes whose results each node of a recipe's pipeline takes, in the order of the data flow."""
    present = of(recipe)
    upstream = UPSTREAM | ({} if recipe.curated_schema else {"SchemaGen": ("StatisticsGen",)})
    return {node: tuple(found for found in upstream[node] if found in present) for node in present}


def taken_over(recipe: Recipe, from_node: str) -> list[str]:
    """The nodes that a run from `from_node` on does not run and needs the results of, in the order of the data flow."""
    upstream = graph(recipe)
    running = {from_node}
    for node, before in upstream.items():
        if running & set(before):
            running.add(node)
    waiting, needed = list(running), set[str]()
    while waiting:
        found = set(upstream[waiting.pop()]) - running - needed
        needed |= found
        waiting += found
    return [node for node in upstream if node in needed]


def check_present(recipe: Recipe, *nodes: str | None) -> None:
    """Checks that a recipe's pipeline has these nodes; None stands for no node.

    Raises:
        SettingsError: It lacks one.
    """
    for node in nodes:
        if node and node not in of(recipe):
            raise SettingsError(
                f"the pipeline of {recipe.name} has no node {node}: tflite.quantization is none.",
                "Ask for it in recipe.yaml or with `--set tflite.quantization=int8`.",
            )


def check_order(from_node: str | None, to_node: str | None) -> None:
    """Checks that a partial run has something to run.

    Raises:
        SettingsError: `from_node` comes after `to_node`.
    """
    if from_node and to_node and NODES.index(from_node) > NODES.index(to_node):
        raise SettingsError(f"--from {from_node} comes after --to {to_node}; the order is {', '.join(NODES)}.")


def find(name: str) -> str:
    """The node of that name, in whatever case it is written.

    Raises:
        SettingsError: There is none.
    """
    by_lower = {node.lower(): node for node in NODES}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f"Did you mean {by_lower[near[0]]}?" if near else f"There are: {', '.join(NODES)}."
    raise SettingsError(f"no node named {name!r}. {hint}")
