"""What benchmarks found, and the table that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        name: What was measured.
        value: In `unit`.
        at_least: The bar; None is none.
        at_most: The bar; None is none.
        unit: What follows the value.
        digits: Digits after the decimal point.
    """

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""
    digits: int = 2

    @property
    def met(self) -> bool:
        """Whether the value is within its bar; also where there is none."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    @property
    def bar(self) -> str:
        """The bar in words; empty where there is none."""
        limits = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {limit:g}{self.unit}" for sign, limit in limits if limit is not None)


def show(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """Prints the table, and names the bars that were missed."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for heading in ("", "Value", "Bar", ""):
        table.add_column(heading, header_style="dim", justify="right" if heading == "Value" else "left")
    for figure in figures:
        verdict = Text("met", style="green") if figure.met else Text("missed", style="bold red")
        value = f"{figure.value:,.{figure.digits}f}{figure.unit}"
        table.add_row(figure.name, value, figure.bar, verdict if figure.bar else "")
    console.print()
    console.print(table)
    missed = [figure.name for figure in figures if not figure.met]
    if missed:
        console.print(f"\nMissed: {'; '.join(missed)}", style="bold red", highlight=False)
