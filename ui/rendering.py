"""Renders parts as pages: a file that needs no network, or pages for a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from ui.charts import Chart
from ui.parts import Part

HERE = Path(__file__).parent
STATIC = HERE / "static"
STYLE_FILE = "pages.css"
SCRIPT_FILE = "pages.js"
THEME_FILE = "theme.js"
# A mill wheel in its race.
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="{size}" height="{size}" aria-hidden="true">'
    '<g fill="none" stroke="{color}" stroke-width="2" stroke-linecap="round">'
    '<circle cx="12" cy="10" r="7"/><path d="M12 3v14M5 10h14M7 5l10 10M17 5L7 15"/>'
    '<path d="M2 21q2.5-2.500 5 0t5 0t5 0t5 0"/></g></svg>'
)


def render(template: str, *, inline: bool, **values: Any) -> str:
    """Renders a page.

    Args:
        template: The template's name below templates/.
        inline: Whether to embed style and script, as a file that stands alone needs.
        values: The template's values.
    """
    return templates().get_template(template).render(inline=inline, **values)


def draw(part: Part | None) -> Markup:
    """A part as HTML, drawn by the macro with its name; empty for None."""
    if part is None or isinstance(part, Markup):
        return part or Markup("")
    name = "chart" if isinstance(part, Chart) else type(part).__name__.lower()
    return _macro(name)(part)


def prepare() -> None:
    """Loads the templates ahead of time, so that the first page does not wait for them."""
    for name in templates().list_templates(extensions=["html"]):
        templates().get_template(name)


@cache
def templates() -> jinja2.Environment:
    """The templates and the functions that they call."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "draw": draw,
        "static": _static,
        "chart_json": chart_json,
        "mark": Markup(MARK.format(size=22, color="currentColor")),  # noqa: S704 (our own text)
        "favicon": "data:image/svg+xml," + quote(MARK.format(size=24, color="#2f6fb0")),
    }
    return environment


def chart_json(chart: Chart) -> Markup:
    """A chart for a script element of type application/json, which no `</script>` in a value can end."""
    text = json.dumps(chart.to_json(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (a `<` is all that HTML reads in a script element)


@cache
def _macro(name: str) -> Callable[[Part], Markup]:
    return cast(Callable[[Part], Markup], getattr(templates().get_template("parts.html").module, name))


@cache
def _static(name: str) -> Markup:
    text = (STATIC / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 (our own file)
