"""How much the taxi recipe's metrics owe to chance: trains it with several seeds: `python -m benchmarks.taxi_seeds`.

The runs share one temporary environment, so that only what a seed changes runs again: training and what follows.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import children, millrace


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=2), help="Trains seeds 1 to this one.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file too.")
def main(seeds: int, json_path: Path | None) -> None:
    """Train the taxi recipe with several seeds and show its metrics, their mean and their standard deviation.

    Exit codes: 0, or 1 if a run failed. A seed whose model misses the recipe's bars is shown, not refused.
    """
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench-"))
    try:
        by_seed = _measure(folder, seeds)
    except children.ChildError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    shutil.rmtree(folder)
    summary = {
        name: {"mean": statistics.mean(values), "deviation": statistics.stdev(values)}
        for name, values in _by_metric(by_seed).items()
    }
    console.print(_table(by_seed, summary))
    if json_path:
        json_path.write_text(json.dumps({"by_seed": by_seed, "summary": summary}, indent=2) + "\n", encoding="utf-8")


def _measure(folder: Path, seeds: int) -> dict[int, dict[str, float]]:
    environment = millrace.write_environment(folder / "millrace")
    by_seed = {}
    for seed in range(1, seeds + 1):
        # Bars off: each seed is held against the one before, and a worse one is what is to be seen here.
        millrace.run(f"seed-{seed}", environment, folder / "logs", f"trainer.seed={seed}", bars=False)
        metrics = millrace.evaluation(folder / "millrace")["metrics"]
        by_seed[seed] = {metric["name"]: metric["value"] for metric in metrics}
    return by_seed


def _by_metric(by_seed: dict[int, dict[str, float]]) -> dict[str, list[float]]:
    return {name: [metrics[name] for metrics in by_seed.values()] for name in by_seed[1]}


def _table(by_seed: dict[int, dict[str, float]], summary: dict[str, dict[str, float]]) -> Table:
    table = Table(
        title="The taxi recipe by seed", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for heading in ("Seed", *summary):
        table.add_column(heading, header_style="dim", justify="left" if heading == "Seed" else "right")
    for seed, metrics in by_seed.items():
        table.add_row(str(seed), *(f"{metrics[name]:.4f}" for name in summary))
    table.add_row("mean", *(f"{entry['mean']:.4f}" for entry in summary.values()), style="bold")
    table.add_row("deviation", *(f"{entry['deviation']:.4f}" for entry in summary.values()))
    return table


if __name__ == "__main__":
    main()
