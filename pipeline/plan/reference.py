"""Writes the reference of all settings of a recipe and of its metrics into docs/recipes.md, from docstrings and types.

.venv/bin/python -m pipeline.plan.reference
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.evaluation.metric_names import METRICS
from contracts.settings import Settings
from pipeline.plan import project
from pipeline.plan.recipe import RecipeSettings

PAGE = Path("docs", "recipes.md")
BEGIN = "<!-- Made by python -m pipeline.plan.reference from the settings' docstrings: do not edit below. -->"

SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
"""Constraints of pydantic's fields."""


def page(text: str) -> str:
    """The page with its made part anew.

    Args:
        text: The page as it is; what stands before `BEGIN` is kept.
    """
    written, _, _ = text.partition(BEGIN)
    return "\n".join(
        [f"{written}{BEGIN}", *_metrics(), "", "## Every setting", *_section("recipe.yaml", RecipeSettings)]
    )


def _metrics() -> Iterator[str]:
    yield from ("", "## Metrics by task", "", "| Metric | Judges | Better | Says |", "|---|---|---|---|")
    for name, metric in METRICS.items():
        yield f"| `{name}` | {', '.join(metric.tasks)} | {metric.better or 'neither'} | {metric.meaning} |"


def _section(heading: str, model: type[BaseModel]) -> Iterator[str]:
    """A table of a settings class, then the sections of the classes within it."""
    summary, meanings = _documented(model)
    yield from ("", f"### `{heading}`", "", summary, "", "| Key | Type | Default | Meaning |", "|---|---|---|---|")
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        prefix = name if heading == "recipe.yaml" else f"{heading}.{name}"
        nested = list(_nested(field.annotation))
        inner += [(f"{prefix}.NAME" if get_origin(field.annotation) is dict else prefix, found) for found in nested]
        meaning = meanings.get(name) or (_documented(nested[0])[0] if nested else "")
        yield f"| `{name}` | {_type(field)} | {_default(field)} | {meaning} |"
    for prefix, found in inner:
        yield from _section(prefix, found)
    if heading == "recipe.yaml":
        yield ""


def _documented(model: type[BaseModel]) -> tuple[str, dict[str, str]]:
    """The text of a class's docstring before its attributes, and the attributes' meanings, inherited ones included."""
    before, _, attributes = (inspect.getdoc(model) or "").partition("Attributes:")
    # An attribute is indented by four spaces, and the lines that go on with it by eight.
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    meanings = {name: re.sub(r"\bSee \w+Settings", "See below", " ".join(meaning.split())) for name, meaning in found}
    base = model.__base__
    inherited = _documented(base)[1] if base is not None and issubclass(base, Settings) else {}
    return " ".join(before.split()), inherited | meanings


def _nested(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _nested(argument)


def _type(field: FieldInfo) -> str:
    limits = [
        f"{sign} {getattr(limit, name)}"
        for limit in field.metadata
        for name, sign in SIGNS.items()
        if hasattr(limit, name)
    ]
    return " ".join([_words(field.annotation), ", ".join(limits)]).strip()


def _words(annotation: Any) -> str:
    """A type in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " \\| ".join(f"`{argument}`" for argument in arguments)
    if origin in (Union, UnionType):
        return " or ".join("none" if argument is NoneType else _words(argument) for argument in arguments)
    if origin in (list, tuple):
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        return f"{_words(arguments[1])} by name"
    if arguments:
        return _words(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "keys, see below"
    names = {str: "text", bool: "true or false", int: "whole number", float: "number", Any: "anything", Path: "path"}
    return names.get(annotation, str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    if value is None:
        return "none"
    if value in ([], {}, ()):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def main() -> None:
    """Writes the page."""
    path = project.root() / PAGE
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
