"""What the source of a recipe's components.py says about its components, without running it or importing TFX."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from contracts.errors import SettingsError

VALUE_TYPES = {"int": "Integer", "float": "Float", "str": "String", "bytes": "Bytes", "bool": "Boolean"}
"""The artifact type in which TFX stores a plain value; any other value becomes a `JsonValue`."""

DECORATOR = "component"


@dataclass(frozen=True)
class Interface:
    """A component's inputs, outputs and parameters.

    Attributes:
        inputs: The artifact type's name by input; empty if the source does not say.
        outputs: The artifact type's name by output.
        parameters: The names of parameters, which are plain values.
        required: The inputs and parameters without a default.
        uses_beam: Whether Beam does its work.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    uses_beam: bool = False


class ComponentSource:
    """A components.py.

    Args:
        path: The file.

    Raises:
        SettingsError: It has a syntax error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise SettingsError(f"{path}:{error.lineno}: {error.msg}.", "Mend the syntax on that line.") from error
        self._definitions = {
            statement.name: statement
            for statement in self._tree.body
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        }

    @property
    def names(self) -> list[str]:
        """What may be a component: every name defined at module level."""
        bound = [*self._definitions, *self._imported()]
        for statement in self._tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            bound += [target.id for target in targets if isinstance(target, ast.Name)]
        return bound

    def interface(self, name: str) -> Interface | None:
        """The interface of the component of that name; None if another module defines it.

        Raises:
            SettingsError: The name is not a component's.
        """
        definition = self._definitions.get(name)
        if isinstance(definition, ast.FunctionDef):
            return self._function(definition)
        return self._class(definition) if isinstance(definition, ast.ClassDef) else None

    def _imported(self) -> Iterator[str]:
        for statement in self._tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)

    def _function(self, definition: ast.FunctionDef) -> Interface:
        where = f"{self._path}:{definition.lineno}: {definition.name}"
        decorators = [decorator for decorator in definition.decorator_list if _last_name(decorator) == DECORATOR]
        if not decorators:
            raise SettingsError(f"{where} is a plain function.", "Make it a component: put TFX's @component above it.")
        if "annotations" in self._imported():
            raise SettingsError(
                f"{where} has its types as text, because of `from __future__ import annotations`, and TFX's @component "
                "reads types.",
                f"Take that import out of {self._path.name}.",
            )
        interface = Interface(outputs=self._returned(definition.returns), uses_beam=_uses_beam(decorators[0]))
        positional, defaults = definition.args.args, definition.args.defaults
        for index, argument in enumerate(positional):
            self._add(interface, argument, index >= len(positional) - len(defaults))
        for argument, default in zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True):
            self._add(interface, argument, default is not None)
        return interface

    def _add(self, interface: Interface, argument: ast.arg, has_default: bool) -> None:
        annotation = _without_none(argument.annotation)
        kind = _last_name(annotation.value) if isinstance(annotation, ast.Subscript) else ""
        inner = annotation.slice if isinstance(annotation, ast.Subscript) else annotation
        if kind == "BeamComponentParameter":
            return
        if kind == "OutputArtifact":
            interface.outputs[argument.arg] = self._type_name(inner)
            return
        if kind == "Parameter":
            interface.parameters.add(argument.arg)
        elif kind == "InputArtifact":
            # An input of several artifacts is annotated as a list of the type.
            single = inner.slice if isinstance(inner, ast.Subscript) else inner
            interface.inputs[argument.arg] = self._type_name(single)
        else:
            interface.inputs[argument.arg] = _value_type(annotation)
        if not has_default:
            interface.required.add(argument.arg)

    def _returned(self, annotation: ast.expr | None) -> dict[str, str]:
        """The plain values that a function returns: an `OutputDict(name=type)`, or a TypedDict of the module."""
        if isinstance(annotation, ast.Call):
            return {entry.arg: _value_type(_without_none(entry.value)) for entry in annotation.keywords if entry.arg}
        definition = self._definitions.get(_last_name(annotation))
        fields = definition.body if isinstance(definition, ast.ClassDef) else []
        return {
            entry.target.id: _value_type(_without_none(entry.annotation))
            for entry in fields
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
        }

    def _class(self, definition: ast.ClassDef) -> Interface | None:
        assigned = _assigned(definition)
        spec = self._definitions.get(_last_name(assigned.get("SPEC_CLASS")))
        if not isinstance(spec, ast.ClassDef):
            return None
        sections = _assigned(spec)
        inputs, outputs = self._channels(sections.get("INPUTS")), self._channels(sections.get("OUTPUTS"))
        parameters = set(_entries(sections.get("PARAMETERS")))
        init = next(
            (item for item in definition.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None
        )
        if inputs is None or outputs is None or init is None:
            return None
        arguments = [*init.args.args[1:], *init.args.kwonlyargs]
        defaults = [*init.args.defaults, *(item for item in init.args.kw_defaults if item is not None)]
        return Interface(
            {argument.arg: inputs.get(argument.arg, "") for argument in arguments if argument.arg not in parameters},
            outputs,
            {argument.arg for argument in arguments if argument.arg not in inputs},
            # Arguments with a default normally come last.
            {argument.arg for argument in arguments[: len(arguments) - len(defaults)]},
            "BeamExecutorSpec" in ast.dump(definition),
        )

    def _channels(self, section: ast.expr | None) -> dict[str, str] | None:
        """The entries of a ComponentSpec's INPUTS or OUTPUTS; None if they are not a literal dictionary."""
        if section is None or not isinstance(section, ast.Dict):
            return None
        return {
            name: self._type_name(next((word.value for word in value.keywords if word.arg == "type"), None))
            for name, value in _entries(section).items()
            if isinstance(value, ast.Call)
        }

    def _type_name(self, node: ast.expr | None) -> str:
        """The name of an artifact type: its TYPE_NAME if this module defines the class, otherwise the class's name."""
        name = _last_name(node)
        definition = self._definitions.get(name)
        type_name = _assigned(definition).get("TYPE_NAME") if isinstance(definition, ast.ClassDef) else None
        return str(type_name.value) if isinstance(type_name, ast.Constant) else name


def _last_name(node: ast.AST | None) -> str:
    """`c` for `a.b.c` and for `a.b.c(…)`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _without_none(node: ast.expr | None) -> ast.expr | None:
    """`T` for `Optional[T]` and for `T | None`."""
    if isinstance(node, ast.Subscript) and _last_name(node.value) == "Optional":
        return node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return node.left
    return node


def _value_type(node: ast.expr | None) -> str:
    return VALUE_TYPES.get(_last_name(node), "JsonValue")


def _uses_beam(decorator: ast.expr) -> bool:
    words = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(word.arg == "use_beam" and getattr(word.value, "value", False) for word in words)


def _assigned(definition: ast.ClassDef) -> dict[str, ast.expr]:
    assigned: dict[str, ast.expr] = {}
    for statement in definition.body:
        if isinstance(statement, ast.Assign):
            assigned |= {target.id: statement.value for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
            assigned[statement.target.id] = statement.value
    return assigned


def _entries(section: ast.expr | None) -> dict[str, ast.expr]:
    if not isinstance(section, ast.Dict):
        return {}
    pairs = zip(section.keys, section.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
