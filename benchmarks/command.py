"""What benchmarks have in common: the command line, a run's folder and rounds, the table of what they measured."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import children

HELP = {"help_option_names": ["-h", "--help"]}
JSON_OPTION = click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file too."
)
KEEP_OPTION = click.option("--keep", is_flag=True, help="Keep the temporary folder with logs and outputs.")


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

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain data, and whether its bar is met."""
        return asdict(self) | {"met": self.met}


@dataclass(frozen=True)
class Bench:
    """One run of a set of benchmarks.

    Attributes:
        folder: Where everything goes.
        rounds: How often each side is measured.
        console: Shows what is being done.
    """

    folder: Path
    rounds: int
    console: Console

    def say(self, note: str) -> None:
        """Shows what is being done."""
        self.console.print(note, style="dim", highlight=False)

    def call(self, function: str, arguments: Mapping[str, Any], cores: Collection[int] = ()) -> Any:
        """Calls a function in a process of its own; see `children.call_in_child`."""
        return children.call_in_child(function, arguments, self.folder / "children", cores)


AnyBench = TypeVar("AnyBench", bound=Bench)


def new_table(*headings: str, title: str | None = None) -> Table:
    """A table without lines: the first column and those of bars and verdicts to the left, numbers to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        is_left = number == 0 or heading in ("Bar", "")
        table.add_column(heading, header_style="dim", justify="left" if is_left else "right")
    return table


def show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """Prints the table, and names the bars that were missed."""
    table = new_table("", "Value", "Bar", "", title=title)
    for figure in figures:
        verdict = Text("met", style="green") if figure.met else Text("missed", style="bold red")
        value = f"{figure.value:,.{figure.digits}f}{figure.unit}"
        table.add_row(figure.name, value, figure.bar, verdict if figure.bar else "")
    console.print()
    console.print(table)
    missed = [figure.name for figure in figures if not figure.met]
    if missed:
        console.print(f"\nMissed: {'; '.join(missed)}", style="bold red", highlight=False)


@contextmanager
def temporary_folder(console: Console, keep: bool = False) -> Iterator[Path]:
    """A folder for logs and outputs, removed at the end unless it is to be kept.

    A child that fails ends this process with exit code 1; the folder then stays, for the log that the message names.
    """
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench-"))
    try:
        yield folder
    except children.ChildError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    if keep:
        console.print(f"Kept in {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)


def write_json(path: Path | None, result: Any) -> None:
    """Writes the numbers to the file of `--json`, where one is asked for."""
    if path:
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def command(
    title: str,
    text: str,
    make_bench: Callable[[Path, int, Console], AnyBench],
    benchmarks: Mapping[str, Callable[[AnyBench], list[Figure]]],
) -> click.Command:
    """Returns a command that measures all of the benchmarks, or those named, and shows them against their bars.

    Args:
        title: What is measured; the heading of the table.
        text: The command's help.
        make_bench: Makes what each benchmark is given of a folder, a number of rounds and a console.
        benchmarks: The benchmarks by name.
    """

    @click.command(help=text, context_settings=HELP)
    @click.argument("names", nargs=-1, type=click.Choice(list(benchmarks)))
    @click.option(
        "--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often each side is measured."
    )
    @JSON_OPTION
    @KEEP_OPTION
    def main(names: Sequence[str], rounds: int, json_path: Path | None, keep: bool) -> None:
        console = Console()
        with temporary_folder(console, keep) as folder:
            bench = make_bench(folder, rounds, console)
            figures = [figure for name in names or benchmarks for figure in benchmarks[name](bench)]
            show_figures(console, title, figures)
            write_json(json_path, [figure.to_dict() for figure in figures])
        sys.exit(0 if all(figure.met for figure in figures) else 1)

    return main
