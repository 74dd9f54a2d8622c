"""Builds the TFX pipeline of a recipe from the table of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration import pipeline as tfx_pipeline

from contracts.fingerprints import PROPERTY, Fingerprint
from pipeline.plan import beam, nodes
from pipeline.plan.environment import Environment
from pipeline.plan.recipe import Recipe
from pipeline.plan.table import TABLE, BuildContext, Node


def build(
    recipe: Recipe,
    environment: Environment,
    fingerprints: Mapping[str, Fingerprint],
    span: int | None,
    connection: Any,
    enable_cache: bool = True,
) -> tfx_pipeline.Pipeline:
    """Builds the TFX pipeline of a recipe.

    Args:
        recipe: What to run.
        environment: Where to run it.
        fingerprints: By node name; each becomes part of its node's cache key.
        span: The resolved span of the input data, if its path has one.
        connection: The metadata store's `ConnectionConfig`, as ML Metadata defines it.
        enable_cache: Whether nodes may take their results from earlier runs.
    """
    components: dict[str, BaseNode] = {}
    for name, node in nodes.table(recipe).items():
        fingerprint = fingerprints.get(name, Fingerprint())
        context = BuildContext(recipe, environment.state_root, environment.serving_root, span, fingerprint)
        components[name] = _component(node, context, components)
        if not node.looks_up:
            components[name].exec_properties[PROPERTY] = fingerprint.to_json()
    return tfx_pipeline.Pipeline(
        pipeline_name=recipe.name,
        pipeline_root=str(environment.pipeline_root / recipe.name),
        components=list(components.values()),
        enable_cache=enable_cache,
        metadata_connection_config=connection,
        beam_pipeline_args=beam.pipeline_options(environment.beam),
    )


def _component(node: Node, context: BuildContext, components: Mapping[str, BaseNode]) -> BaseNode:
    channels = {}
    for parameter, source in node.inputs.items():
        producer, _, output = source.partition(".")
        channels[parameter] = components[producer].outputs[output]
    component = _load(node.component)(**channels, **node.arguments(context)).with_id(node.name)
    for upstream in node.after:
        component.add_upstream_node(components[upstream])
    return component


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


for _entry in TABLE:
    # Here and not in `build`, while the worker has lean imports of TFX switched on.
    _load(_entry.component)
