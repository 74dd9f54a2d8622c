"""The parts that pages are made of, each drawn by the macro with its name in templates/parts.html.

A section of a page is a function that returns parts; charts (ui/charts.py) are parts, too. Every text in a part is
escaped; inline markup (links, states, code) is made by ui/texts.py. In lists of parts, None is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from markupsafe import Markup

from ui.charts import Chart
from ui.texts import Inline, plain


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Attributes:
        content: What it says.
        look: `dim`, `error`, `warning`, `note`, `path`, or empty.
    """

    content: Inline
    look: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    content: Inline


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: Its heading; may be empty.
        cell: Makes the cell for a row.
        look: `number`, `path`, `time`, `id`, `name`, or empty; a function if it depends on the row.
        sort: Makes the value to sort by, if that is not the text shown; None sorts last.
        heat: How dark the cell is shaded, from 0 to 1.
        when: Whether the table has the column at all.
    """

    title: str
    cell: Callable[[Any], Any]
    look: str | Callable[[Any], str] = ""
    sort: Callable[[Any], Any] | None = None
    heat: Callable[[Any], float] | None = None
    when: bool = True


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        label: What it is; its accessible name.
        rows: A value for each row, from which the columns make their cells.
        columns: From left to right.
        sortable: Whether a click on a heading sorts it.
        filter: A noun, such as `runs`, for the box that filters its rows; empty: no such box.
        head: The index of the column that names the row; None if none does.
        dim: Whether a row is of less interest.
    """

    label: str
    rows: Sequence[Any]
    columns: Iterable[Column]
    sortable: bool = False
    filter: str = ""
    head: int | None = 0
    dim: Callable[[Any], bool] = field(default=lambda _row: False, kw_only=True)

    @property
    def shown(self) -> list[Column]:
        """The columns that it has."""
        return [column for column in self.columns if column.when]


@dataclass(frozen=True)
class Facts:
    """Names and their values; values of None are left out."""

    pairs: Iterable[tuple[str, Inline | int | None]]


@dataclass(frozen=True)
class Commands:
    """Command lines to copy.

    Attributes:
        lines: Headings and command lines.
        compact: Whether they belong to something that has a heading already.
    """

    lines: Sequence[tuple[str, str]]
    compact: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list.

    Attributes:
        items: One per bullet.
        look: `links`, `cards`, or empty.
    """

    items: Sequence[Inline]
    look: str = ""


@dataclass(frozen=True)
class Verbatim:
    """Preformatted text, such as a file's.

    Attributes:
        text: The text.
        label: Its accessible name if it is long enough to scroll; otherwise empty.
        look: `diff` for lines that begin with + and -, `command` for one to copy, or empty.
    """

    text: Inline
    label: str = ""
    look: str = ""


@dataclass(frozen=True)
class Group:
    """Parts that belong together.

    Attributes:
        parts: The parts.
        look: `grid` for parts side by side, `error`, or empty.
        id: Its anchor, or empty.
    """

    parts: Sequence[Part | None]
    look: str = ""
    id: str = ""


@dataclass(frozen=True)
class Details:
    """Parts that are shown on a click.

    Attributes:
        summary: What is visible before.
        parts: The parts.
        open: Whether they are shown at first.
        look: `feature`, or empty.
    """

    summary: Inline
    parts: Sequence[Part | None]
    open: bool = False
    look: str = ""


@dataclass(frozen=True)
class Picker:
    """A choice in a form.

    Attributes:
        name: The query parameter.
        label: What is chosen.
        choices: The choices.
        chosen: The current choice, or None.
        everything: The text for no choice; empty if one has to be made.
    """

    name: str
    label: str
    choices: Sequence[str]
    chosen: str | None
    everything: str = "all"


@dataclass(frozen=True)
class Filter:
    """A form that filters a list.

    Attributes:
        action: The page that it requests.
        pickers: The choices.
    """

    action: str
    pickers: Sequence[Picker]


@dataclass(frozen=True)
class Form:
    """A form of parts with checkboxes, and a button.

    Attributes:
        action: The page that it requests.
        hidden: Query parameters that the reader does not choose; None is left out.
        parts: The parts.
        button: The button's text.
        aside: The text beside the button.
    """

    action: str
    hidden: Mapping[str, Any]
    parts: Sequence[Part | None]
    button: str
    aside: Inline = ""


@dataclass(frozen=True)
class Ways:
    """Links to neighbouring pages; those without an address are left out.

    Attributes:
        label: What they lead to; their accessible name.
        links: Text, address, and the relation (`next`, `prev`, or `current` for this page), or empty.
        look: `paging` or `ways`.
    """

    label: str
    links: Iterable[tuple[str, str | None, str]]
    look: str = "paging"


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes:
        id: Its anchor.
        title: Its heading.
        parts: What it shows.
        heading: Whether the title is visible; otherwise it is only the accessible name.
    """

    id: str
    title: str
    parts: Sequence[Part | None]
    heading: bool = True


Part = (
    Text | Heading | Table | Facts | Commands | Bullets | Verbatim | Group | Details | Filter | Form | Ways | Section
    | Chart | Markup
)  # fmt: skip
Parts = Sequence[Part | None]


def pairs(label: str, key: str, value: str, values: Mapping[str, Any]) -> Table:
    """A table of names and values, sorted by name."""
    return Table(
        label.lower(),
        sorted(values.items(), key=lambda pair: pair[0].lower()),
        [Column(key, lambda pair: pair[0], "name"), Column(value, lambda pair: plain(pair[1]), "path")],
    )
