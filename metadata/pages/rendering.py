"""Turns templates into pages: one file that needs no network, or pages that a server gives out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from metadata.pages.charts import Chart
from metadata.pages.links import Links

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
MILLISECONDS = 1000
NONE = "-"


def render(template: str, *, inline: bool, links: Links, **values: Any) -> str:
    """A page.

    Args:
        template: Its name below templates/.
        inline: Whether style and script are in the page itself, as a file that stands alone needs it.
        links: Where the things it names can be looked at.
        values: What the template shows.
    """
    return templates().get_template(template).render(inline=inline, links=links, **values)


def write(page: str, path: Path) -> None:
    """Writes a page as a file; whole or not at all.

    Raises:
        OSError: It cannot be written there.
    """
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text(page, encoding="utf-8")
        os.replace(staging, path)
    finally:
        staging.unlink(missing_ok=True)


@cache
def templates() -> jinja2.Environment:
    """The templates, with their filters."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"number": number, "count": count, "seconds": seconds, "time": local_time, "share": share}
    made.filters |= {"bytes": size, "plain": plain}
    made.globals |= {
        "static": _static,
        "chart_json": chart_json,
        "mark": Markup(MARK.format(size=22, color="currentColor")),  # noqa: S704 (our own text)
        "favicon": "data:image/svg+xml," + quote(MARK.format(size=24, color="#2f6fb0")),
    }
    return made


def chart_json(chart: Chart) -> Markup:
    """A chart for a script element of type application/json."""
    return script_json(chart.to_json())


def script_json(value: Mapping[str, Any]) -> Markup:
    """JSON that no `</script>` in a value can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (a `<` is all that HTML reads in a script element)


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many digits after the point where it is small, fewer where it is large; a dash for None."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}" if abs(value) < 1000 else f"{value:,.0f}"


def count(value: int, one: str, many: str | None = None) -> str:
    """A count with its noun: `1 row`, `2 rows`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def seconds(value: float | None) -> str:
    """A duration."""
    if value is None:
        return ""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def local_time(milliseconds: int | None) -> str:
    """Milliseconds since 1970 as local time; nothing for None."""
    return (
        ""
        if milliseconds is None
        else datetime.fromtimestamp(milliseconds / MILLISECONDS).strftime("%Y-%m-%d %H:%M:%S")
    )


def share(value: float | None) -> str:
    """A share as a percentage."""
    if value is None:
        return NONE
    return f"{value:.1%}" if value >= 0.001 or value == 0 else f"{value:.2%}"


def size(value: int) -> str:
    """A number of bytes."""
    shown, units = float(value), ["bytes", "kB", "MB", "GB", "TB"]
    while shown >= 1000 and len(units) > 1:
        shown, units = shown / 1000, units[1:]
    return f"{shown:.0f} {units[0]}" if units[0] == "bytes" else f"{shown:.1f} {units[0]}"


def plain(value: Any) -> str:
    """A setting or a property as text; a dash for None."""
    if value is None:
        return NONE
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@cache
def _static(name: str) -> Markup:
    text = (STATIC / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 (our own file)
