"""The nodes of a recipe's pipeline, derived from the table: their names, order and graph."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from contracts.errors import SettingsError
from contracts.near_names import did_you_mean
from pipeline.plan import recipe as recipes
from pipeline.plan import recipe_nodes
from pipeline.plan.recipe import Recipe
from pipeline.plan.table import BASELINE_NODE, INFRA_NODE, PUSHER_NODE, TABLE, TFLITE_NODE, TRAINER_NODE, Node

__all__ = ["BASELINE_NODE", "INFRA_NODE", "PUSHER_NODE", "TFLITE_NODE", "TRAINER_NODE"]

NODES = tuple(dict.fromkeys(node.name for node in TABLE))
"""The names of all of Millrace's nodes, in the order of the data flow."""

BEAM_NODES = tuple(node.name for node in TABLE if node.uses_beam)
"""Those whose work Beam does, on whatever engine."""


def table(recipe: Recipe) -> dict[str, Node]:
    """The nodes of a recipe's pipeline by name, the recipe's own included, in the order of the data flow.

    Raises:
        SettingsError: The recipe's own nodes are wrong, or wait for each other.
    """
    present = {node.name: node for node in TABLE if node.when(recipe)}
    present |= {node.name: node for node in recipe_nodes.read_nodes(recipe, present)}
    try:
        return _ordered({name: node.among(present) for name, node in present.items()})
    except CycleError as error:
        waiting = " -> ".join(reversed(error.args[1]))
        raise SettingsError(
            f"{recipe.where('nodes')}: nodes wait for each other: {waiting}.",
            "Take one of them out of after or before.",
        ) from error


def _ordered(nodes: dict[str, Node]) -> dict[str, Node]:
    """Sorts nodes topologically: ours in the order of the table, a recipe's own as early as possible."""
    sorter = TopologicalSorter({name: node.upstream for name, node in nodes.items()})
    sorter.prepare()
    ranks: dict[str, tuple[int, int]] = {}
    ordered: dict[str, Node] = {}
    waiting: list[tuple[tuple[int, int], int, str]] = []
    positions = {name: position for position, name in enumerate(nodes)}
    while sorter.is_active():
        for name in sorter.get_ready():
            position, depth = max((ranks[other] for other in nodes[name].upstream), default=(0, 0))
            ranks[name] = (position, depth + 1) if nodes[name].own else (positions[name], 0)
            heapq.heappush(waiting, (ranks[name], positions[name], name))
        name = heapq.heappop(waiting)[-1]
        ordered[name] = nodes[name]
        sorter.done(name)
    return ordered


def all_names(recipe_name: str) -> tuple[str, ...]:
    """The names of all nodes that a recipe's pipeline can have, in the order of the data flow."""
    try:
        present = names(recipes.load(recipe_name))
    except SettingsError:
        return NODES
    ordered = list(NODES)
    for index, name in enumerate(present):
        if name not in ordered:
            ordered.insert(ordered.index(present[index - 1]) + 1 if index else 0, name)
    return tuple(ordered)


def names(recipe: Recipe) -> tuple[str, ...]:
    """The names of the nodes of a recipe's pipeline, in the order of the data flow."""
    return tuple(table(recipe))


def graph(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The upstream nodes of each node of a recipe's pipeline, in the order of the data flow."""
    return {name: node.upstream for name, node in table(recipe).items()}


def taken_over(recipe: Recipe, from_node: str) -> list[str]:
    """The nodes that a run from `from_node` on does not run, but whose results it needs, in data-flow order."""
    upstream = graph(recipe)
    running = {from_node}
    for node, before in upstream.items():
        if running & set(before):
            running.add(node)
    waiting, needed = list(running), set[str]()
    while waiting:
        more = set(upstream[waiting.pop()]) - running - needed
        needed |= more
        waiting += more
    return [node for node in upstream if node in needed]


def check_present(recipe: Recipe, *nodes: str | None) -> None:
    """Checks that a recipe's pipeline has these nodes; None is ignored.

    Raises:
        SettingsError: It lacks one.
    """
    present = table(recipe)
    for name in nodes:
        if name and name not in present:
            reason, fix = next(node.absence for node in TABLE if node.name == name)
            raise SettingsError(f"the pipeline of {recipe.name} has no node {name}: {reason}", fix)


def check_order(from_node: str | None, to_node: str | None, order: Sequence[str] = NODES) -> None:
    """Checks that a partial run has something to run; `order` lists the pipeline's nodes.

    Raises:
        SettingsError: `from_node` comes after `to_node`.
    """
    if from_node and to_node and order.index(from_node) > order.index(to_node):
        raise SettingsError(f"--from {from_node} comes after --to {to_node}; the order is {', '.join(order)}.")


def find(name: str, own: Iterable[str] = ()) -> str:
    """Finds a node by its name, ignoring case, among ours and the recipe's `own`.

    Raises:
        SettingsError: There is none.
    """
    known = [*NODES, *own]
    by_lower = {node.lower(): node for node in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    raise SettingsError(f"no node named {name!r}. {did_you_mean(name, known)}")
