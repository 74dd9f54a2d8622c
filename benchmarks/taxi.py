"""Times the taxi pipeline against stock TFX's taxi example and against a plain script: `python -m benchmarks.taxi`.

All have the same rows and the same number of training steps of the same size; whole processes are timed, each in fresh
folders. See README.md beside this file for what is measured and how to read it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console

from benchmarks import children, command, millrace
from benchmarks.command import Figure
from metadata.store import NodeRun
from pipeline.plan import recipe

LABELS = {
    "stock": "stock, fresh",
    "stock_again": "stock, run again",
    "stock_cached": "stock, all cached",
    "ours": "ours, fresh",
    "ours_again": "ours, nothing changed",
    "plain": "plain script",
}

RATIOS = {
    "ours / stock, fresh": ("ours", "stock", 0.35),
    "ours nothing changed / stock all cached": ("ours_again", "stock_cached", 0.07),
}
MAX_SECONDS_AGAIN = 3.0
AIM_OVER_PLAIN = 1.5

STOCK_STEPS, STOCK_BATCH = 1000, 40
"""Hard-coded in TFX's example."""

WARM_UP = "from tfx import v1"
"""Loads nearly every module that any of the three uses, so that the first to be timed does not pay for a cold disk."""


@dataclass(frozen=True)
class Round:
    """One round of the benchmark.

    Attributes:
        seconds: Wall time by the keys of `LABELS`.
        cpu_seconds: Processor time by the same keys.
        spent: The seconds of our fresh run by part, in chronological order.
        scores: The result of `benchmarks.score_taxi`.
    """

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    spent: dict[str, float]
    scores: dict[str, Any]


@click.command(context_settings=command.HELP)
@click.option(
    "--rounds",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each is timed; medians are shown.",
)
@command.JSON_OPTION
@command.KEEP_OPTION
def main(rounds: int, json_path: Path | None, keep: bool) -> None:
    """Time the taxi pipeline against stock TFX's taxi example and a plain script.

    Exit codes: 0 all bars met, 1 a bar missed or a run failed.
    """
    console = Console()
    _check_same_work()
    with command.temporary_folder(console, keep) as folder:
        console.print("Warming up", style="dim")
        children.run_child("warm-up", ["-c", WARM_UP], folder)
        measured = [_measure(folder / f"round-{n}", console, backwards=n % 2 == 0) for n in range(1, rounds + 1)]
        figures, result = _figures(measured), _medians(measured)
        _show(console, figures, result)
        command.write_json(json_path, {"bars": [figure.to_dict() for figure in figures], **result})
    sys.exit(0 if all(figure.met for figure in figures) else 1)


def _figures(rounds: Sequence[Round]) -> list[Figure]:
    """The figures with bars, and the plain script; ratios are taken within each round before their median."""

    def ratio(above: str, below: str) -> float:
        return median(r.seconds[above] / r.seconds[below] for r in rounds)

    again = median(r.seconds["ours_again"] for r in rounds)
    ours, stock = (median(r.scores["auc"][name] for r in rounds) for name in ("ours", "stock"))
    fresh, cached = (
        Figure(name, ratio(above, below), at_most=bar, digits=3) for name, (above, below, bar) in RATIOS.items()
    )
    return [
        fresh,
        Figure("ours nothing changed, seconds", again, at_most=MAX_SECONDS_AGAIN, digits=3),
        cached,
        Figure("AUC of ours, against stock's", ours, at_least=stock, digits=4),
        Figure(f"ours / plain script (aim {AIM_OVER_PLAIN:g})", ratio("ours", "plain")),
    ]


def _medians(rounds: Sequence[Round]) -> dict[str, Any]:
    """Medians over the rounds, and the rounds themselves, as plain data."""
    return {
        "seconds": {label: median(r.seconds[label] for r in rounds) for label in LABELS},
        "cpu_seconds": {label: median(r.cpu_seconds[label] for r in rounds) for label in LABELS},
        "spent": {part: median(r.spent[part] for r in rounds) for part in rounds[0].spent},
        "auc": {name: median(r.scores["auc"][name] for r in rounds) for name in ("stock", "ours")},
        "rounds": [vars(r) for r in rounds],
    }


def _show(console: Console, figures: Sequence[Figure], result: dict[str, Any]) -> None:
    times = command.new_table("", "Wall", "Processor", title="Seconds, whole process")
    for label, text in LABELS.items():
        times.add_row(text, f"{result['seconds'][label]:.1f}", f"{result['cpu_seconds'][label]:.1f}")
    parts = command.new_table("", "Wall", title="Ours, fresh, by part")
    for part, seconds in result["spent"].items():
        parts.add_row(part, f"{seconds:.1f}")
    for table in (times, parts):
        console.print()
        console.print(table)
    command.show_figures(console, "Against the bars", figures)
    console.print(f"\n{_about_auc(result['rounds'][-1]['scores'])}", style="dim", highlight=False)


def _about_auc(scores: dict[str, Any]) -> str:
    by_stock_label = scores["auc_by_stock_label"]
    return (
        f"AUC: both models on the {scores['rows']:,} rows that both kept for evaluation, against our label. "
        f"Stock's own label differs in {scores['labels_that_differ']} rows (no fare, or a tip of just 20 %); against "
        f"it stock has {by_stock_label['stock']:.4f} and ours {by_stock_label['ours']:.4f}."
    )


def _check_same_work() -> None:
    trainer = recipe.load(millrace.RECIPE).settings.trainer
    if (trainer.train_steps, trainer.batch_size) != (STOCK_STEPS, STOCK_BATCH):
        raise click.ClickException(
            f"stock trains {STOCK_STEPS} steps of {STOCK_BATCH}; the recipe's trainer.train_steps is "
            f"{trainer.train_steps} and its trainer.batch_size {trainer.batch_size}, so the two cannot be compared."
        )


def _measure(folder: Path, console: Console, backwards: bool) -> Round:
    """Runs one round: stock, ours, plain, in this order or backwards, so that none always runs first."""
    times: dict[str, children.Timed] = {}
    contestants = {"stock": _stock, "ours": _ours, "plain": _plain}
    for name in reversed(contestants) if backwards else contestants:
        for label, timed in contestants[name](folder / name, folder / "logs").items():
            console.print(f"{folder.name}  {LABELS[label]:<24}{timed.seconds:7.1f} s", style="dim", highlight=False)
            times[label] = timed
    scores = folder / "scores.json"
    stock, ours = str(folder / "stock"), str(folder / "ours")
    children.run_child("score", ["-m", "benchmarks.score_taxi", stock, ours, str(scores)], folder / "logs")
    return Round(
        seconds={label: timed.seconds for label, timed in times.items()},
        cpu_seconds={label: timed.cpu_seconds for label, timed in times.items()},
        spent=_seconds_by_part(times["ours"], millrace.latest_nodes(folder / "ours")),
        scores=json.loads(scores.read_text(encoding="utf-8")),
    )


def _stock(folder: Path, logs: Path) -> dict[str, children.Timed]:
    folder.mkdir(parents=True)
    command = ["-m", "benchmarks.stock_taxi", str(folder)]
    # The second run has a blessed model to compare with, so it evaluates and pushes again; only the third is all
    # cached.
    return {label: children.run_child(label, command, logs) for label in ("stock", "stock_again", "stock_cached")}


def _ours(folder: Path, logs: Path) -> dict[str, children.Timed]:
    environment = millrace.write_environment(folder)
    return {
        "ours": millrace.run("ours", environment, logs),
        "ours_again": millrace.run("ours-again", environment, logs),
    }


def _plain(folder: Path, logs: Path) -> dict[str, children.Timed]:
    folder.mkdir(parents=True)
    return {"plain": children.run_child("plain", ["-m", "benchmarks.plain_taxi", str(folder)], logs)}


def _seconds_by_part(timed: children.Timed, nodes: dict[str, NodeRun]) -> dict[str, float]:
    """The seconds of a run by part: before the first node, each node, between nodes, and after the last."""
    runs = list(nodes.values())
    first, last = min(run.started for run in runs) / 1000, max(run.updated for run in runs) / 1000
    spent = {"start-up": first - timed.began} | {run.node: run.seconds for run in runs}
    spent["between nodes"] = last - first - sum(run.seconds for run in runs)
    spent["end"] = timed.began + timed.seconds - last
    return spent


if __name__ == "__main__":
    main()
