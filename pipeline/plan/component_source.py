"""What the source of a recipe's components.py says of its TFX components, read without running it or importing TFX."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from contracts.errors import SettingsError

VALUE_TYPES = {"int": "Integer", "float": "Float", "str": "String", "bytes": "Bytes", "bool": "Boolean"}
"""The artifact type that TFX keeps a plain value in; any other value is a `JsonValue`."""

DECORATOR = "component"


@dataclass(frozen=True)
class Interface:
    """What a component takes and gives.

    Attributes:
        inputs: By input, the name of its artifact type; empty where the source does not say it.
        outputs: By output, the name of its artifact type.
        parameters: The names of what is given as plain values.
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
        """What may be a component: everything with a name at the module's top."""
        bound = [*self._definitions, *self._imported()]
        for statement in self._tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            bound += [target.id for target in targets if isinstance(target, ast.Name)]
        return bound

    def interface(self, name: str) -> Interface | None:
        """What the component of that name takes and gives; None where another module defines it.

        Raises:
            SettingsError: What has the name is no component.
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
        decorators = [one for one in definition.decorator_list if _last_name(one) == DECORATOR]
        if not decorators:
            raise SettingsError(f"{where} is a plain function.", "Make it a component: put TFX's @component above it.")
        if "annotations" in self._imported():
            raise SettingsError(
                f"{where} has its types as text, because of `from __future__ import annotations`, and TFX's @component "
                "reads types.",
                f"Take that import out of {self._path.name}.",
            )
        interface = Interface(outputs=self._returned(definition.returns), uses_beam=_uses_beam(decorators[0]))
        positional, given = definition.args.args, definition.args.defaults
        for index, argument in enumerate(positional):
            self._add(interface, argument, index >= len(positional) - len(given))
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
            # Several artifacts of a type are a list of it.
            single = inner.slice if isinstance(inner, ast.Subscript) else inner
            interface.inputs[argument.arg] = self._type_name(single)
        else:
            interface.inputs[argument.arg] = _value_type(annotation)
        if not has_default:
            interface.required.add(argument.arg)

    def _returned(self, annotation: ast.expr | None) -> dict[str, str]:
        """The plain values that a function returns: an `OutputDict(name=type)`, or a TypedDict of the module."""
        if isinstance(annotation, ast.Call):
            return {one.arg: _value_type(_without_none(one.value)) for one in annotation.keywords if one.arg}
        definition = self._definitions.get(_last_name(annotation))
        fields = definition.body if isinstance(definition, ast.ClassDef) else []
        return {
            one.target.id: _value_type(_without_none(one.annotation))
            for one in fields
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
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
            (one for one in definition.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
        )
        if inputs is None or outputs is None or init is None:
            return None
        arguments = [*init.args.args[1:], *init.args.kwonlyargs]
        defaults = [*init.args.defaults, *(one for one in init.args.kw_defaults if one is not None)]
        return Interface(
            {one.arg: inputs.get(one.arg, "") for one in arguments if one.arg not in parameters},
            outputs,
            {one.arg for one in arguments if one.arg not in inputs},
            # As a rule what has a default comes last.
            {one.arg for one in arguments[: len(arguments) - len(defaults)]},
            "BeamExecutorSpec" in ast.dump(definition),
        )

    def _channels(self, section: ast.expr | None) -> dict[str, str] | None:
        """The entries of a ComponentSpec's INPUTS or OUTPUTS; None where they are not written out."""
        if section is None or not isinstance(section, ast.Dict):
            return None
        return {
            name: self._type_name(next((word.value for word in value.keywords if word.arg == "type"), None))
            for name, value in _entries(section).items()
            if isinstance(value, ast.Call)
        }

    def _type_name(self, node: ast.expr | None) -> str:
        """The name of an artifact type: what the class says, where it is one of this module, else its own name."""
        name = _last_name(node)
        definition = self._definitions.get(name)
        said = _assigned(definition).get("TYPE_NAME") if isinstance(definition, ast.ClassDef) else None
        return str(said.value) if isinstance(said, ast.Constant) else name


def _last_name(node: ast.AST | None) -> str:
    """`c` of `a.b.c`, also where it is called."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _without_none(node: ast.expr | None) -> ast.expr | None:
    """`T` of `Optional[T]` and of `T | None`."""
    if isinstance(node, ast.Subscript) and _last_name(node.value) == "Optional":
        return node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return node.left
    return node


def _value_type(node: ast.expr | None) -> str:
    return VALUE_TYPES.get(_last_name(node), "JsonValue")


def _uses_beam(decorator: ast.expr) -> bool:
    words = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(one.arg == "use_beam" and getattr(one.value, "value", False) for one in words)


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
