"""Times the taxi pipeline against stock TFX's taxi example and against a plain script: `python -m benchmarks.taxi`.

Same rows, same number of training steps of the same size; whole processes, each in fresh folders. See README.md beside
this file for what is measured and how to read it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from benchmarks import children, millrace, taxi_report
from benchmarks.taxi_report import Round
from metadata.store import NodeRun
from pipeline import recipe

STOCK_STEPS, STOCK_BATCH = 1000, 40
"""Fixed in TFX's example."""

WARM_UP = "from tfx import v1"
"""Nearly every module that any of the three loads, so that the first to be timed does not pay for a cold disk."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rounds",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each is timed; medians are shown.",
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file too.")
@click.option("--keep", is_flag=True, help="Keep the temporary folder with logs and outputs.")
def main(rounds: int, json_path: Path | None, keep: bool) -> None:
    """Time the taxi pipeline against stock TFX's taxi example and a plain script.

    Exit codes: 0 all bars met, 1 a bar missed or a run failed.
    """
    console = Console()
    _check_same_work()
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench-"))
    try:
        console.print("Warming up", style="dim")
        children.run("warm-up", ["-c", WARM_UP], folder)
        measured = [_measure(folder / f"round-{n}", console, backwards=n % 2 == 0) for n in range(1, rounds + 1)]
    except children.ChildError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    result = taxi_report.summarize(measured)
    taxi_report.show(console, result)
    if json_path:
        json_path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if keep:
        console.print(f"Kept in {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)
    sys.exit(0 if all(bar["met"] for bar in result["bars"]) else 1)


def _check_same_work() -> None:
    trainer = recipe.load(millrace.RECIPE).settings.trainer
    if (trainer.train_steps, trainer.batch_size) != (STOCK_STEPS, STOCK_BATCH):
        raise click.ClickException(
            f"stock trains {STOCK_STEPS} steps of {STOCK_BATCH}; the recipe's trainer.train_steps is "
            f"{trainer.train_steps} and its trainer.batch_size {trainer.batch_size}, so the two cannot be compared."
        )


def _measure(folder: Path, console: Console, backwards: bool) -> Round:
    """One round: stock, ours, plain, in this order or backwards, so that no one always runs first."""
    times: dict[str, children.Timed] = {}
    contestants = {"stock": _stock, "ours": _ours, "plain": _plain}
    for name in reversed(contestants) if backwards else contestants:
        for label, timed in contestants[name](folder / name, folder / "logs").items():
            console.print(
                f"{folder.name}  {taxi_report.LABELS[label]:<24}{timed.seconds:7.1f} s", style="dim", highlight=False
            )
            times[label] = timed
    scores = folder / "scores.json"
    stock, ours = str(folder / "stock"), str(folder / "ours")
    children.run("score", ["-m", "benchmarks.score_taxi", stock, ours, str(scores)], folder / "logs")
    return Round(
        seconds={label: timed.seconds for label, timed in times.items()},
        cpu_seconds={label: timed.cpu_seconds for label, timed in times.items()},
        spent=_spent(times["ours"], millrace.latest_nodes(folder / "ours")),
        scores=json.loads(scores.read_text(encoding="utf-8")),
    )


def _stock(folder: Path, logs: Path) -> dict[str, children.Timed]:
    folder.mkdir(parents=True)
    command = ["-m", "benchmarks.stock_taxi", str(folder)]
    # The second run has a blessed model to compare with, so it evaluates and pushes anew; only the third is all cached.
    return {label: children.run(label, command, logs) for label in ("stock", "stock_again", "stock_cached")}


def _ours(folder: Path, logs: Path) -> dict[str, children.Timed]:
    environment = millrace.write_environment(folder)
    return {
        "ours": millrace.run("ours", environment, logs),
        "ours_again": millrace.run("ours-again", environment, logs),
    }


def _plain(folder: Path, logs: Path) -> dict[str, children.Timed]:
    folder.mkdir(parents=True)
    return {"plain": children.run("plain", ["-m", "benchmarks.plain_taxi", str(folder)], logs)}


def _spent(whole: children.Timed, nodes: dict[str, NodeRun]) -> dict[str, float]:
    """Where a run's seconds went: each node, what came before the first, what was between nodes, what came after."""
    runs = list(nodes.values())
    first, last = min(run.started for run in runs) / 1000, max(run.updated for run in runs) / 1000
    spent = {"start-up": first - whole.began} | {run.node: run.seconds for run in runs}
    spent["between nodes"] = last - first - sum(run.seconds for run in runs)
    spent["end"] = whole.began + whole.seconds - last
    return spent


if __name__ == "__main__":
    main()
