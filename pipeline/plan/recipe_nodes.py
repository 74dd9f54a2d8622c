"""Reads a recipe's own nodes from `nodes:` in its recipe.yaml and from its components.py, and names every mistake.

They become entries of the same form as those of our own table, so everything derived from it includes them.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from functools import partial

from contracts.errors import SettingsError
from contracts.near_names import did_you_mean
from pipeline.plan import project
from pipeline.plan.component_source import ComponentSource, Interface
from pipeline.plan.recipe import NodeSettings, Recipe
from pipeline.plan.table import RESERVED, TABLE, BuildContext, Node

NODE_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,39}")
NODE_FIX = "docs/recipe-nodes.md shows a whole example."


def read_nodes(recipe: Recipe, present: Mapping[str, Node]) -> list[Node]:
    """Reads the recipe's own nodes as entries of the table.

    Args:
        recipe: The recipe.
        present: Those of Millrace's nodes that its pipeline has.

    Raises:
        SettingsError: One message with a line for every mistake.
    """
    if not recipe.settings.nodes:
        return []
    path = recipe.components_path
    if not path.exists():
        raise SettingsError(
            f"{recipe.where('nodes')}: {project.relative_path(path)} does not exist, in which the components of these "
            "nodes should be.",
            "Write it; see docs/recipe-nodes.md.",
        )
    reader = _Reader(recipe, ComponentSource(path), present)
    nodes = reader.nodes()
    if reader.mistakes:
        raise SettingsError("\n".join(reader.mistakes), NODE_FIX)
    return nodes


class _Reader:
    """Builds the entries and collects the mistakes.

    Args:
        recipe: The recipe.
        source: Its components.py.
        present: Those of Millrace's nodes that its pipeline has.
    """

    def __init__(self, recipe: Recipe, source: ComponentSource, present: Mapping[str, Node]) -> None:
        self._recipe = recipe
        self._source = source
        self._outputs: dict[str, Mapping[str, str] | None] = {name: node.outputs for name, node in present.items()}
        self.mistakes: list[str] = []

    def nodes(self) -> list[Node]:
        settings = self._recipe.settings.nodes
        interfaces = {name: self._interface(name, node) for name, node in settings.items() if self._may_be_called(name)}
        for name, interface in interfaces.items():
            self._outputs[name] = interface.outputs if interface else settings[name].outputs
        return [self._node(name, settings[name], interface) for name, interface in interfaces.items()]

    def _mistake(self, key_path: tuple[str, ...], text: str) -> None:
        self.mistakes.append(f"{self._recipe.where('nodes', *key_path)}: nodes.{'.'.join(key_path)}: {text}")

    def _may_be_called(self, name: str) -> bool:
        """Checks a node's name."""
        taken = {node.name.lower(): node.name for node in TABLE} | {other.lower(): other for other in RESERVED}
        taken |= {other.lower(): other for other in self._recipe.settings.nodes if other < name}
        if not NODE_NAME.fullmatch(name):
            self._mistake((name,), f"received the name {name!r}, expected a capital, then letters and digits.")
        elif name.lower() in taken:
            self._mistake((name,), f"the name {taken[name.lower()]} is taken; choose another.")
        else:
            return True
        return False

    def _interface(self, name: str, settings: NodeSettings) -> Interface | None:
        component = settings.component or name
        key_path = (name, "component") if settings.component else (name,)
        path = project.relative_path(self._recipe.components_path)
        if component not in self._source.names:
            hint = did_you_mean(component, self._source.names)
            self._mistake(key_path, f"{path} has no component {component}. {hint}")
            return None
        try:
            interface = self._source.interface(component)
        except SettingsError as error:
            self._mistake(key_path, f"{error.what} {error.fix}")
            return None
        if interface is None and settings.outputs is None:
            self._mistake(
                key_path,
                f"{path} does not say itself what {component} takes and gives; name its outputs here: "
                "`outputs: {name: ArtifactType}`, or `outputs: {}`.",
            )
        if interface is not None and settings.outputs is not None:
            self._mistake((name, "outputs"), f"{path} says itself what {component} gives; take this out.")
        return interface

    def _node(self, name: str, settings: NodeSettings, interface: Interface | None) -> Node:
        for parameter, source in settings.inputs.items():
            self._check_source(
                (name, "inputs", parameter), source, interface.inputs.get(parameter) if interface else ""
            )
        if interface is not None:
            self._check_arguments(name, settings, interface)
        for key in ("after", "before"):
            for other in getattr(settings, key):
                self._check_node((name, key), other)
        for package in settings.packages:
            self._check_package(name, package)
        component = settings.component or name
        return Node(
            name,
            component=f"recipes.{self._recipe.name}.components:{component}",
            inputs=settings.inputs,
            outputs=self._outputs[name] or {},
            after=tuple(settings.after),
            before=tuple(settings.before),
            arguments=partial(_params, name),
            settings=tuple(f"nodes.{name}.{key}" for key in ("component", "inputs", "params")),
            packages=tuple(settings.packages),
            uses_beam=interface is not None and interface.uses_beam,
            own=True,
        )

    def _check_source(self, key_path: tuple[str, ...], source: str, wanted: str | None) -> None:
        producer, point, output = source.partition(".")
        if not point or not producer or not output:
            self._mistake(key_path, f"received {source!r}, expected Node.output, such as StatisticsGen.statistics.")
            return
        if not self._check_node(key_path, producer):
            return
        outputs = self._outputs[producer]
        # None: that node's own mistake has already been reported.
        if outputs is None:
            return
        if output not in outputs:
            self._mistake(key_path, f"{producer} has no output {output!r}. {did_you_mean(output, outputs)}")
        elif wanted and outputs[output] and wanted != outputs[output]:
            self._mistake(key_path, f"takes {wanted}, and {source} is {outputs[output]}.")

    def _check_node(self, key_path: tuple[str, ...], other: str) -> bool:
        if other in self._outputs and other != key_path[0]:
            return True
        absent = next((node for node in TABLE if node.name == other), None)
        if other == key_path[0]:
            self._mistake(key_path, "a node cannot wait for itself.")
        elif absent is not None:
            self._mistake(key_path, f"the pipeline has no node {other}: {absent.absence[0]} {absent.absence[1]}")
        elif other not in self._recipe.settings.nodes:
            known = [*self._outputs, *self._recipe.settings.nodes]
            self._mistake(key_path, f"no node named {other!r}. {did_you_mean(other, dict.fromkeys(known))}")
        return False

    def _check_arguments(self, name: str, settings: NodeSettings, interface: Interface) -> None:
        component = settings.component or name
        sections = {
            "inputs": ("input", settings.inputs, interface.inputs),
            "params": ("parameter", settings.params, interface.parameters),
        }
        for key, (word, given, known) in sections.items():
            for argument in given:
                if argument not in known:
                    hint = did_you_mean(argument, known, f"It has {', '.join(known) or 'none'}.")
                    self._mistake((name, key, argument), f"{component} has no {word} {argument!r}. {hint}")
        for argument in sorted(interface.required - settings.inputs.keys() - settings.params.keys()):
            key = "params" if argument in interface.parameters else "inputs"
            self._mistake((name, key), f"{component} needs {argument!r}.")

    def _check_package(self, name: str, package: str) -> None:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            self._mistake((name, "packages"), f"no package {package!r} is installed.")


def _params(name: str, context: BuildContext) -> dict[str, object]:
    return dict(context.recipe.settings.nodes[name].params)
