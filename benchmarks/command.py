"""What benchmarks share: the command line, a run's folder and rounds, and the table of results."""

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
        value: The value in `unit`.
        at_least: The lower bar, or None.
        at_most: The upper bar, or None.
        unit: The text that follows the value.
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
        """Whether the value meets its bar, or has none."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    @property
    def bar(self) -> str:
        """The bar as text; empty if there is none."""
        limits = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {limit:g}{self.unit}" for sign, limit in limits if limit is not None)

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain data, including whether its bar is met."""
        return asdict(self) | {"met": self.met}


@dataclass(frozen=True)
class Bench:
    """One run of a set of benchmarks.

    Attributes:
        folder: The folder of all outputs.
        rounds: How often each side is measured.
        console: Shows the progress.
    """

    folder: Path
    rounds: int
    console: Console

    def say(self, note: str) -> None:
        """Shows a note on the progress."""
        self.console.print(note, style="dim", highlight=False)

    def call(self, function: str, arguments: Mapping[str, Any], cores: Collection[int] = ()) -> Any:
        """Calls a function in a process of its own; see `children.call_in_child`."""
        return children.call_in_child(function, arguments, self.folder / "children", cores)


AnyBench = TypeVar("AnyBench", bound=Bench)


def new_table(*headings: str, title: str | None = None) -> Table:
    """A table without lines, with the first column, bars and verdicts aligned left and numbers aligned right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        is_left = number == 0 or heading in ("Bar", "")
        table.add_column(heading, header_style="dim", justify="left" if is_left else "right")
    return table


def show_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """Prints the table and names the bars that were missed."""
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
    """A folder for logs and outputs, removed at the end unless `keep` is set.

    If a child fails, this process ends with exit code 1 and the folder stays, since the message names a log in it.
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
    """Writes the numbers to the file that `--json` names, if any."""
    if path:
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def command(
    title: str,
    text: str,
    make_bench: Callable[[Path, int, Console], AnyBench],
    benchmarks: Mapping[str, Callable[[AnyBench], list[Figure]]],
) -> click.Command:
    """Returns a command that measures all benchmarks, or the named ones, and shows them against their bars.

    Args:
        title: What is measured; the heading of the table.
        text: The command's help.
        make_bench: Makes the argument of each benchmark from a folder, a number of rounds and a console.
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
