"""Texts of pages: numbers as people read them, and what stands in a line: links, states, code."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

Inline = str | Markup
"""A text, which is escaped where it is shown, or a line that `line` and its like made."""

MILLISECONDS = 1000
NONE = "-"
EMPTY = Markup("")


def line(*pieces: Any) -> Markup:
    """Pieces of a line after each other; what is no markup is escaped."""
    return EMPTY.join(pieces)


def listed(pieces: Iterable[Any], separator: Inline = ", ") -> Markup:
    """Pieces of a line with something between them."""
    return escape(separator).join(pieces)


def link(text: Any, href: str) -> Inline:
    """A link; the text alone where it leads nowhere."""
    return Markup('<a href="{}">{}</a>').format(href, text) if href else str(text)


def state(word: str, look: str | None = None) -> Markup:
    """A word in a box: a state such as `done`, or any word with the look `good`, `bad`, `warning` or none."""
    look = word.replace(" ", "-") if look is None else look
    return Markup('<span class="state{}">{}</span>').format(f" state-{look}" if look else "", word)


def code(text: Any) -> Markup:
    """A name or a value as it stands in a file."""
    return Markup("<code>{}</code>").format(text)


def dim(text: Any) -> Markup:
    """What is of less interest."""
    return Markup('<span class="dim">{}</span>').format(text)


def bold(text: Any) -> Markup:
    """What is to be seen first."""
    return Markup("<strong>{}</strong>").format(text)


def marked(text: Any) -> Markup:
    """What is at fault."""
    return Markup("<mark>{}</mark>").format(text)


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
    if milliseconds is None:
        return ""
    return datetime.fromtimestamp(milliseconds / MILLISECONDS).strftime("%Y-%m-%d %H:%M:%S")


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


def shortened(text: str, length: int) -> str:
    """A text, cut where it is longer than so many characters."""
    return text if len(text) <= length else f"{text[:length]}…"
