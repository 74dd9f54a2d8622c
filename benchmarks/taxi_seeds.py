"""Shows how far the taxi recipe's metrics vary by chance, with several seeds: `python -m benchmarks.taxi_seeds`.

The runs share one temporary environment, so that only what depends on the seed runs again: training and what follows.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import command, millrace

BySeed = dict[int, dict[str, float]]
"""Seed -> metric's name -> value."""


@click.command(context_settings=command.HELP)
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=2), help="Trains seeds 1 to this one.")
@command.JSON_OPTION
def main(seeds: int, json_path: Path | None) -> None:
    """Train the taxi recipe with several seeds and show its metrics, their mean and their standard deviation.

    Exit codes: 0, or 1 if a run failed. A seed whose model misses the recipe's bars is shown, not refused.
    """
    console = Console()
    with command.temporary_folder(console) as folder:
        by_seed = _measure(folder, seeds)
    by_metric = {name: [metrics[name] for metrics in by_seed.values()] for name in by_seed[1]}
    summary = {
        name: {"mean": statistics.mean(values), "deviation": statistics.stdev(values)}
        for name, values in by_metric.items()
    }
    console.print(_table(by_seed, summary))
    command.write_json(json_path, {"by_seed": by_seed, "summary": summary})


def _measure(folder: Path, seeds: int) -> BySeed:
    environment = millrace.write_environment(folder / "millrace")
    by_seed = {}
    for seed in range(1, seeds + 1):
        # Without bars: each seed would be compared with the one before, and worse ones are to be shown here too.
        millrace.run(f"seed-{seed}", environment, folder / "logs", f"trainer.seed={seed}", bars=False)
        values = millrace.evaluation(folder / "millrace").values
        by_seed[seed] = {name: math.nan if value is None else value for name, value in values.items()}
    return by_seed


def _table(by_seed: BySeed, summary: dict[str, dict[str, float]]) -> Table:
    table = command.new_table("Seed", *summary, title="The taxi recipe by seed")
    for seed, metrics in by_seed.items():
        table.add_row(str(seed), *(f"{metrics[name]:.4f}" for name in summary))
    for row, style in (("mean", "bold"), ("deviation", None)):
        table.add_row(row, *(f"{entry[row]:.4f}" for entry in summary.values()), style=style)
    return table


if __name__ == "__main__":
    main()
