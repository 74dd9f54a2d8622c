"""Measures the model server against its bars: `python -m benchmarks.serving [NAME …]`; see README.md one folder up."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from benchmarks import children, report
from benchmarks.serving import protocols, sizes, swap
from benchmarks.serving.bench import Bench

BENCHMARKS = {
    "rest": protocols.rest,
    "grpc": protocols.grpc,
    "fastapi": protocols.fastapi,
    "heavy": sizes.heavy,
    "batching": sizes.batching,
    "swap": swap.measure,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
@click.option(
    "--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often each side is measured."
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file too.")
@click.option("--keep", is_flag=True, help="Keep the temporary folder with logs and outputs.")
def main(names: Sequence[str], rounds: int, json_path: Path | None, keep: bool) -> None:
    """Measure the model server: all of it, or what is named.

    Servers, clients and yardsticks are processes of their own; ratios are medians over the rounds.

    Exit codes: 0 all bars met, 1 a bar missed or a run failed.
    """
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench-"))
    bench = Bench(folder, rounds, console)
    try:
        figures = [figure for name in names or BENCHMARKS for figure in BENCHMARKS[name](bench)]
    except children.ChildError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    report.show(console, "The model server", figures)
    if json_path:
        shown = [asdict(figure) | {"met": figure.met} for figure in figures]
        json_path.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    if keep:
        console.print(f"Kept in {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)
    sys.exit(0 if all(figure.met for figure in figures) else 1)


if __name__ == "__main__":
    main()
