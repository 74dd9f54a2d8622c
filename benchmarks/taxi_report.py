"""What the taxi benchmark found: medians, ratios, bars, and the table that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

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


@dataclass(frozen=True)
class Round:
    """One round of the benchmark.

    Attributes:
        seconds: Wall time by the keys of `LABELS`.
        cpu_seconds: Processor time by the same keys.
        spent: Where the seconds of our fresh run went, in the order of time.
        scores: What `benchmarks.score_taxi` wrote.
    """

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    spent: dict[str, float]
    scores: dict[str, Any]


def summarize(rounds: Sequence[Round]) -> dict[str, Any]:
    """Medians over the rounds, ratios taken within each round first, bars, and the rounds themselves, as plain data."""
    auc = {name: median(r.scores["auc"][name] for r in rounds) for name in ("stock", "ours")}
    bars = [_bar(name, _ratio(rounds, ours, stock), bar) for name, (ours, stock, bar) in RATIOS.items()]
    seconds = {label: median(r.seconds[label] for r in rounds) for label in LABELS}
    bars.insert(1, _bar("ours nothing changed, seconds", seconds["ours_again"], MAX_SECONDS_AGAIN))
    bars.append(
        {"name": "AUC of ours", "value": auc["ours"], "at_least": auc["stock"], "met": auc["ours"] >= auc["stock"]}
    )
    return {
        "bars": bars,
        "over_plain": {"value": _ratio(rounds, "ours", "plain"), "aim": AIM_OVER_PLAIN},
        "seconds": seconds,
        "cpu_seconds": {label: median(r.cpu_seconds[label] for r in rounds) for label in LABELS},
        "spent": {part: median(r.spent[part] for r in rounds) for part in rounds[0].spent},
        "auc": auc,
        "rounds": [vars(r) for r in rounds],
    }


def _ratio(rounds: Sequence[Round], above: str, below: str) -> float:
    return median(r.seconds[above] / r.seconds[below] for r in rounds)


def _bar(name: str, value: float, at_most: float) -> dict[str, Any]:
    return {"name": name, "value": value, "at_most": at_most, "met": value <= at_most}


def show(console: Console, result: dict[str, Any]) -> None:
    """Prints the tables, and names the bars that were missed."""
    for table in (_times(result), _spent(result), _bars(result)):
        console.print()
        console.print(table)
    console.print(f"\n{_about_auc(result['rounds'][-1]['scores'])}", style="dim", highlight=False)
    missed = [bar["name"] for bar in result["bars"] if not bar["met"]]
    if missed:
        console.print(f"\nMissed: {'; '.join(missed)}", style="bold red", highlight=False)


def _about_auc(scores: dict[str, Any]) -> str:
    other = scores["auc_by_stock_label"]
    return (
        f"AUC: both models on the {scores['rows']:,} rows that both kept for evaluation, against our label. "
        f"Stock's own label differs in {scores['labels_that_differ']} rows (no fare, or a tip of just 20 %); against "
        f"it stock has {other['stock']:.4f} and ours {other['ours']:.4f}."
    )


def _times(result: dict[str, Any]) -> Table:
    table = _table("Seconds, whole process", "", "Wall", "Processor")
    for label, shown in LABELS.items():
        table.add_row(shown, f"{result['seconds'][label]:.1f}", f"{result['cpu_seconds'][label]:.1f}")
    return table


def _spent(result: dict[str, Any]) -> Table:
    table = _table("Ours, fresh, by part", "", "Wall")
    for part, seconds in result["spent"].items():
        table.add_row(part, f"{seconds:.1f}")
    return table


def _bars(result: dict[str, Any]) -> Table:
    table = _table("Against the bars", "", "Value", "Bar", "")
    for bar in result["bars"]:
        limit = f"≤ {bar['at_most']:g}" if "at_most" in bar else f"≥ {bar['at_least']:.4f} (stock)"
        verdict = Text("met", style="green") if bar["met"] else Text("missed", style="bold red")
        table.add_row(
            bar["name"], f"{bar['value']:.4f}" if "at_least" in bar else f"{bar['value']:.3f}", limit, verdict
        )
    over = result["over_plain"]
    table.add_row("ours / plain script", f"{over['value']:.2f}", f"aim {over['aim']:g}", "")
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(
            heading, header_style="dim", justify="right" if number == 1 or heading == "Processor" else "left"
        )
    return table
