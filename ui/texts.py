"""Texts of pages: numbers formatted for people, and inline markup: links, states, code."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

Inline = str | Markup
"""Plain text, which is escaped when shown, or inline markup that the functions here made."""

MILLISECONDS = 1000
NONE = "-"
EMPTY = Markup("")


def line(*pieces: Any) -> Markup:
    """Joins pieces of inline content; plain text is escaped."""
    return EMPTY.join(pieces)


def listed(pieces: Iterable[Any], separator: Inline = ", ") -> Markup:
    """Joins pieces of inline content with a separator."""
    return escape(separator).join(pieces)


def link(text: Any, href: str) -> Inline:
    """A link; only the text if there is no address."""
    return Markup('<a href="{}">{}</a>').format(href, text) if href else str(text)


def state(word: str, look: str | None = None) -> Markup:
    """A word in a box: a state such as `done`, or any word with the look `good`, `bad`, `warning` or none."""
    look = word.replace(" ", "-") if look is None else look
    return Markup('<span class="state{}">{}</span>').format(f" state-{look}" if look else "", word)


def code(text: Any) -> Markup:
    """A name or a value in code style."""
    return Markup("<code>{}</code>").format(text)


def dim(text: Any) -> Markup:
    """Text of less interest."""
    return Markup('<span class="dim">{}</span>').format(text)


def bold(text: Any) -> Markup:
    """Text to be noticed first."""
    return Markup("<strong>{}</strong>").format(text)


def marked(text: Any) -> Markup:
    """Text that is at fault."""
    return Markup("<mark>{}</mark>").format(text)


def number(value: float | None, digits: int = 4) -> str:
    """A number with this many decimals, none if it is 1,000 or more; a dash for None."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}" if abs(value) < 1000 else f"{value:,.0f}"


def count(value: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun: `1 row`, `2 rows`."""
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


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
    """Milliseconds since 1970 as local time; empty for None."""
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
    """A text, cut off if it is longer than this many characters."""
    return text if len(text) <= length else f"{text[:length]}…"
