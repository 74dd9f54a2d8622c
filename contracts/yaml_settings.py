"""Reads a YAML file into typed settings; errors give the file, line, key and the nearest valid name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from contracts.errors import SettingsError
from contracts.near_names import near_names
from contracts.settings import Settings

Model = TypeVar("Model", bound=Settings)
KeyPath = tuple[str | int, ...]

ANY = "<name>"
"""Stands in a key path for a name that the user chooses."""


def load(model: type[Model], path: Path, overrides: Sequence[str] = ()) -> Model:
    """Reads `path` as a `model`; see `load_with_origins`."""
    return load_with_origins(model, path, overrides)[0]


def load_with_origins(
    model: type[Model], path: Path, overrides: Sequence[str] = ()
) -> tuple[Model, dict[KeyPath, str]]:
    """Reads `path` as a `model`, and returns where each key was given: `file:line`, or the text of an override.

    Args:
        model: The settings class the file must fit.
        path: A YAML file.
        overrides: `a.b=value` texts that replace values in the file; the values are YAML.

    Raises:
        SettingsError: One message, with a line for every mistake in the file and the overrides.
    """
    values, lines = _read(path)
    origins: dict[KeyPath, str] = {key: f"{path}:{line}" for key, line in lines.items()}
    for override in overrides:
        key_path, value = _parse_override(override)
        _put(values, key_path, value, override)
        origins[key_path] = f"--set {override}"
    try:
        return model.model_validate(values), origins
    except ValidationError as error:
        mistakes = [_explain(model, dict(mistake), origins, path) for mistake in error.errors()]
        raise SettingsError("\n".join(mistakes)) from error


def _read(path: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    text = path.read_text(encoding="utf-8")
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise SettingsError(f"{where}: not valid YAML: {error.problem}.", "Mend the syntax on that line.") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}:1: expected `key: value` lines, received {type(values).__name__}.")
    lines: dict[KeyPath, int] = {}
    _collect_lines(tree, (), lines, path)
    return values, lines


def _collect_lines(node: yaml.Node | None, prefix: KeyPath, lines: dict[KeyPath, int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            key_path = (*prefix, key.value)
            line = key.start_mark.line + 1
            if key_path in lines:
                raise SettingsError(
                    f"{path}:{line}: {_dotted(key_path)} is given twice, first on line {lines[key_path]}.",
                    "Keep one of the two.",
                )
            lines[key_path] = line
            _collect_lines(value, key_path, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            key_path = (*prefix, index)
            lines[key_path] = value.start_mark.line + 1
            _collect_lines(value, key_path, lines, path)


def _parse_override(override: str) -> tuple[KeyPath, Any]:
    key, separator, value = override.partition("=")
    if not separator or not key.strip():
        raise SettingsError(
            f"--set {override}: expected KEY=VALUE, received {override!r}.",
            "Write for example --set trainer.batch_size=64.",
        )
    try:
        return tuple(key.strip().split(".")), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise SettingsError(f"--set {override}: {value!r} is not a YAML value.", "Quote it.") from error


def _put(values: dict[str, Any], key_path: KeyPath, value: Any, override: str) -> None:
    *parents, last = key_path
    level: Any = values
    for depth, parent in enumerate(parents, start=1):
        level = level.setdefault(parent, {}) if isinstance(level, dict) else None
        if not isinstance(level, dict):
            raise SettingsError(f"--set {override}: {_dotted(key_path[:depth])} holds no further keys.")
    level[last] = value


def origin_of(origins: Mapping[KeyPath, str], key_path: KeyPath, path: Path) -> str:
    """Where a key, or else its nearest parent, was given; the file if neither was."""
    return next((origins[key_path[:n]] for n in range(len(key_path), 0, -1) if key_path[:n] in origins), str(path))


def _explain(model: type[BaseModel], mistake: dict[str, Any], origins: dict[KeyPath, str], path: Path) -> str:
    key_path: KeyPath = mistake["loc"]
    where = origin_of(origins, key_path, path)
    key = _dotted(key_path)
    if mistake["type"] == "extra_forbidden":
        return f"{where}: unknown key {key}.{_suggest(model, key_path)}"
    if mistake["type"] == "missing":
        return f"{where}: {key} is missing; every {path.name} needs it."
    # Our own validators' messages are used as written; pydantic's begin with a capital.
    ours = mistake["type"] == "value_error"
    message: str = mistake["msg"]
    problem = message.removeprefix("Value error, ") if ours else message[:1].lower() + message[1:]
    received = mistake["input"]
    shown = "" if isinstance(received, dict) or "received" in problem else f"; received {received!r}"
    end = "" if problem.endswith("?") and not shown else "."
    return f"{where}: {key + ': ' if key else ''}{problem}{shown}{end}"


def _suggest(model: type[BaseModel], key_path: KeyPath) -> str:
    *section, wanted = key_path
    known = _known_keys(model, ())
    here = sorted(str(key[-1]) for key in known if _fits(key[:-1], section))
    if near := near_names(str(wanted), here):
        return f" Did you mean {_dotted((*section, near[0]))}?"
    # Of several keys with the same last name the outermost.
    elsewhere = {str(key[-1]): _dotted(key) for key in sorted(known, key=len, reverse=True)}
    if near := near_names(str(wanted), elsewhere):
        return f" Did you mean {elsewhere[near[0]]}?"
    return f" Known here: {', '.join(here)}." if here else ""


def _fits(pattern: KeyPath, section: Sequence[str | int]) -> bool:
    same_depth = len(pattern) == len(section)
    return same_depth and all(ours in (ANY, theirs) for ours, theirs in zip(pattern, section, strict=True))


def _known_keys(model: type[BaseModel], prefix: KeyPath) -> list[KeyPath]:
    keys: list[KeyPath] = []
    for name, field in model.model_fields.items():
        keys.append((*prefix, name))
        chosen = (ANY,) if get_origin(field.annotation) is dict else ()
        for annotation in (field.annotation, *get_args(field.annotation)):
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                keys.extend(_known_keys(annotation, (*prefix, name, *chosen)))
    return keys


def _dotted(key_path: KeyPath) -> str:
    return ".".join(str(key) for key in key_path)
