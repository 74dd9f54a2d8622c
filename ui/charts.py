"""Charts as data: what a page hands to `static/pages.js`, which draws it with Observable Plot and dagre.

Python decides what is shown; the browser decides only how. Every chart has the same numbers as a table beside it for
those who do not see it, made by the same script from the same data. Numbers may be None where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Number = float | int | None


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        title: What it shows, as a sentence part; the figure's accessible name.
        caption: What is to be said of it beside its title.
    """

    title: str
    caption: str = field(default="", kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """What the script reads: `kind` is the class's name in lower case, the rest are its attributes."""
        values = asdict(self)
        del values["caption"]
        return {"kind": type(self).__name__.lower(), **values}


@dataclass(frozen=True)
class Bins:
    """One distribution of a histogram.

    Attributes:
        name: Such as the split's name.
        bins: `(low, high, count)`; drawn as shares of the sum, for distributions differ in size.
    """

    name: str
    bins: Sequence[tuple[float, float, float]]


@dataclass(frozen=True)
class Histogram(Chart):
    """Distributions of a number, drawn over each other.

    Attributes:
        series: One or several.
        x: What is counted, with its unit.
    """

    series: list[Bins]
    x: str = ""


@dataclass(frozen=True)
class Counts:
    """One distribution over names.

    Attributes:
        name: Such as the split's name.
        counts: `(label, count)`, in the order they are shown.
        total: Of all, also those that are not shown; shares are of it.
    """

    name: str
    counts: list[tuple[str, float]]
    total: float


@dataclass(frozen=True)
class Bars(Chart):
    """How often names occur, side by side: horizontal bars of shares."""

    series: list[Counts]


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        name: For the legend.
        points: `(x, y)`.
        dashed: Such as validation beside training.
        group: Lines of one group, such as of one run, have one colour; None for a colour of its own.
    """

    name: str
    points: Sequence[tuple[float, Number]]
    dashed: bool = False
    group: int | None = None


@dataclass(frozen=True)
class Lines(Chart):
    """Curves.

    Attributes:
        series: The lines.
        x: The axis' name.
        y: The axis' name.
        diagonal: Whether a line from corner to corner shows what perfect (calibration) or chance (ROC) is.
        markers: Whether each point has a dot.
    """

    series: list[Line]
    x: str
    y: str
    diagonal: bool = False
    markers: bool = False


@dataclass(frozen=True)
class Interval:
    """A value that is known as well as its interval says.

    Attributes:
        label: Such as a slice.
        rows: How many rows it rests on.
        value: The value.
        low: The interval's lower end, or None.
        high: The interval's upper end, or None.
        href: Where a click leads, or an empty text.
    """

    label: str
    rows: int
    value: Number
    low: Number
    high: Number
    href: str = ""


@dataclass(frozen=True)
class Intervals(Chart):
    """Values with their intervals, one a line, dots larger with more rows.

    Attributes:
        rows: The lines, in the order they are shown.
        x: The axis' name.
        reference: A vertical line, such as the value of the whole.
        reference_label: What it is.
    """

    rows: list[Interval]
    x: str
    reference: Number = None
    reference_label: str = ""


@dataclass(frozen=True)
class Node:
    """A node of a graph.

    Attributes:
        id: Names it in edges.
        label: Its first line.
        detail: Its second line, smaller.
        state: A state word (`done`, `cached`, `failed`, `running`, `waiting`, `stopped`, `killed`);
            empty for an artifact.
        shape: `node` for what was done, `artifact` for what was made.
        href: Where a click leads, or an empty text.
        current: Whether the page is about this one.
    """

    id: str
    label: str
    detail: str = ""
    state: str = ""
    shape: Literal["node", "artifact"] = "node"
    href: str = ""
    current: bool = False


@dataclass(frozen=True)
class Graph(Chart):
    """A directed graph, laid out from left to right; from top to bottom where the page is narrow.

    Attributes:
        nodes: The nodes.
        edges: Pairs of ids.
    """

    nodes: list[Node]
    edges: list[tuple[str, str]]


@dataclass(frozen=True)
class Point:
    """A run in a comparison.

    Attributes:
        label: Its id.
        values: By dimension; texts, numbers, or None.
        href: Where a click leads.
        group: Colours it, such as by recipe or state.
    """

    label: str
    values: dict[str, str | Number]
    href: str = ""
    group: str = ""


@dataclass(frozen=True)
class Scatter(Chart):
    """Runs over two of their dimensions, which the reader chooses.

    Attributes:
        points: The runs.
        dimensions: What may be chosen, in order.
        x: The one chosen at first.
        y: The one chosen at first.
    """

    points: list[Point]
    dimensions: list[str]
    x: str
    y: str


@dataclass(frozen=True)
class Parallel(Chart):
    """Parallel coordinates: a line a run over one axis a dimension; texts have axes of their own values.

    Attributes:
        points: The runs.
        dimensions: The axes, in order.
    """

    points: list[Point]
    dimensions: list[str]
