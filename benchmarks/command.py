"""The command line that a set of benchmarks has."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from benchmarks import children, report
from benchmarks.report import Figure

Bench = TypeVar("Bench")


def command(
    title: str,
    text: str,
    make_bench: Callable[[Path, int, Console], Bench],
    benchmarks: Mapping[str, Callable[[Bench], list[Figure]]],
) -> click.Command:
    """Returns a command that measures all of the benchmarks, or those named, and shows them against their bars.

    Args:
        title: What is measured; the heading of the table.
        text: The command's help.
        make_bench: Makes what each benchmark is given of a folder, a number of rounds and a console.
        benchmarks: The benchmarks by name.
    """

    @click.command(help=text, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("names", nargs=-1, type=click.Choice(list(benchmarks)))
    @click.option(
        "--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often each side is measured."
    )
    @click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file too.")
    @click.option("--keep", is_flag=True, help="Keep the temporary folder with logs and outputs.")
    def main(names: Sequence[str], rounds: int, json_path: Path | None, keep: bool) -> None:
        console = Console()
        folder = Path(tempfile.mkdtemp(prefix="millrace-bench-"))
        bench = make_bench(folder, rounds, console)
        try:
            figures = [figure for name in names or benchmarks for figure in benchmarks[name](bench)]
        except children.ChildError as error:
            console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
            sys.exit(1)
        report.show(console, title, figures)
        if json_path:
            shown = [asdict(figure) | {"met": figure.met} for figure in figures]
            json_path.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
        if keep:
            console.print(f"Kept in {folder}", highlight=False, soft_wrap=True)
        else:
            shutil.rmtree(folder)
        sys.exit(0 if all(figure.met for figure in figures) else 1)

    return main
