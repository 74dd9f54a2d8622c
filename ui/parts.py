"""What pages are made of: parts, each drawn by the macro of its name in templates/parts.html.

A section of a page is a function that returns parts; charts (ui/charts.py) are parts, too. Every text in a part is
escaped; what stands in a line with a text (a link, a state, code) is made by ui/texts.py. Where parts are listed, None
stands for a part that is not there.
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
        title: Its heading; a column without one is headed by an empty cell.
        cell: What it shows of a row.
        look: `number`, `path`, `time`, `id`, `name`, or empty; a function of the row where that decides.
        sort: What the column is sorted by, where that is not the text that is shown; None sorts last.
        heat: From 0 to 1, how dark the cell is shaded.
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
        rows: A value a row, from which the columns take what they show.
        columns: From left to right.
        sortable: Whether a click on a heading sorts it.
        filter: A noun, such as `runs`, for the box above it that filters its rows; empty for none.
        head: Which of the shown columns names the row; None where none does.
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
    """Names and their values; a value that is None is left out."""

    pairs: Iterable[tuple[str, Inline | int | None]]


@dataclass(frozen=True)
class Commands:
    """Command lines to copy.

    Attributes:
        lines: Each with its heading.
        compact: Whether they stand under something that has a heading of its own.
    """

    lines: Sequence[tuple[str, str]]
    compact: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list.

    Attributes:
        items: One a point.
        look: `links`, `cards`, or empty.
    """

    items: Sequence[Inline]
    look: str = ""


@dataclass(frozen=True)
class Verbatim:
    """A text as it is, such as of a file.

    Attributes:
        text: The text.
        label: Its accessible name, where it is long enough to scroll; else empty.
        look: `diff` where lines begin with + and -, `command` for one to copy, or empty.
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
        summary: What is seen before.
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
        name: Of the query's part.
        label: What is chosen.
        choices: Among which.
        chosen: The present one, or None.
        everything: What stands for no choice; empty where one has to be made.
    """

    name: str
    label: str
    choices: Sequence[str]
    chosen: str | None
    everything: str = "all"


@dataclass(frozen=True)
class Filter:
    """What a list is narrowed down by.

    Attributes:
        action: The page that is asked.
        pickers: The choices.
    """

    action: str
    pickers: Sequence[Picker]


@dataclass(frozen=True)
class Form:
    """Parts with boxes to check, and a button.

    Attributes:
        action: The page that is asked.
        hidden: Parts of the query that are not chosen; those that are None are left out.
        parts: The parts.
        button: What the button says.
        aside: What stands beside the button.
    """

    action: str
    hidden: Mapping[str, Any]
    parts: Sequence[Part | None]
    button: str
    aside: Inline = ""


@dataclass(frozen=True)
class Ways:
    """Links to what is beside this page; those without an address are left out.

    Attributes:
        label: What they lead to; their accessible name.
        links: Text, address, and the relation (`next`, `prev`), `current` for the one that is shown, or empty.
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
        heading: Whether the title is seen; else it is its accessible name only.
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
    """A table of names and values, by name."""
    return Table(
        label.lower(),
        sorted(values.items(), key=lambda pair: pair[0].lower()),
        [Column(key, lambda pair: pair[0], "name"), Column(value, lambda pair: plain(pair[1]), "path")],
    )
