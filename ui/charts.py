"""Charts as data, which `static/pages.js` draws with Observable Plot and dagre.

Python decides what is shown; the browser only decides how. For those who cannot see a chart, the same script puts a
table with the same numbers beside it. A number may be None if there is none.
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
        title: What it shows; the figure's accessible name.
        caption: A remark beside the title.
    """

    title: str
    caption: str = field(default="", kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The data for the script: `kind` is the class's name in lower case, the rest are its attributes."""
        values = asdict(self)
        del values["caption"]
        return {"kind": type(self).__name__.lower(), **values}


@dataclass(frozen=True)
class Bins:
    """One distribution of a histogram.

    Attributes:
        name: Such as the split's name.
        bins: `(low, high, count)`; drawn as shares of the sum, because distributions differ in size.
    """

    name: str
    bins: Sequence[tuple[float, float, float]]


@dataclass(frozen=True)
class Histogram(Chart):
    """Distributions of a number, drawn over each other.

    Attributes:
        series: One or more distributions.
        x: What is counted, with its unit.
    """

    series: list[Bins]
    x: str = ""


@dataclass(frozen=True)
class Counts:
    """One distribution over names.

    Attributes:
        name: Such as the split's name.
        counts: `(label, count)`, in the order in which they are shown.
        total: The sum of all counts, including those not shown; shares are relative to it.
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
        dashed: Whether it is dashed, such as validation beside training.
        group: Lines of one group, such as one run's, share a colour; None: a colour of its own.
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
        diagonal: Whether a line from corner to corner shows perfect calibration, or chance in a ROC curve.
        markers: Whether each point has a dot.
    """

    series: list[Line]
    x: str
    y: str
    diagonal: bool = False
    markers: bool = False


@dataclass(frozen=True)
class Interval:
    """A value with its interval.

    Attributes:
        label: Such as a slice.
        rows: How many rows it is computed from.
        value: The value.
        low: The interval's lower end, or None.
        high: The interval's upper end, or None.
        href: Where a click leads, or empty.
    """

    label: str
    rows: int
    value: Number
    low: Number
    high: Number
    href: str = ""


@dataclass(frozen=True)
class Intervals(Chart):
    """Values with their intervals, one per line, with larger dots for more rows.

    Attributes:
        rows: The lines, in the order in which they are shown.
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
        id: Identifies it in edges.
        label: Its first line.
        detail: Its second line, smaller.
        state: A state word (`done`, `cached`, `failed`, `running`, `waiting`, `stopped`, `killed`);
            empty for an artifact.
        shape: `node` for a node run, `artifact` for an artifact.
        href: Where a click leads, or empty.
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
    """A directed graph, laid out from left to right, or from top to bottom on a narrow page.

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
        dimensions: The dimensions to choose from, in order.
        x: The initial choice.
        y: The initial choice.
    """

    points: list[Point]
    dimensions: list[str]
    x: str
    y: str


@dataclass(frozen=True)
class Parallel(Chart):
    """Parallel coordinates: a line per run across an axis per dimension; text dimensions have an axis of their values.

    Attributes:
        points: The runs.
        dimensions: The axes, in order.
    """

    points: list[Point]
    dimensions: list[str]
