"""How often intervals of areas under curves hold the truth: `python -m benchmarks.intervals`.

Rows are drawn from distributions whose areas are known, and measured by the Evaluator's own functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import command
from components.evaluation import areas, estimates
from components.evaluation.estimates import ALL_ROWS, Estimate

SEED = 20_251_122
ROWS = (50, 200, 500, 2000)
POSITIVES = (0.02, 0.05, 0.2, 0.5)
AREAS = (0.7, 0.9, 0.95, 0.99)
AT_LEAST, AT_MOST = 0.93, 0.97
ERRORS = 3
"""How many standard errors of the simulation a coverage may be beyond its bar."""
NOISE = 0.5
"""The standard deviation of what makes the baseline of the candidate."""

NORMAL = NormalDist()
Array = Any


def normal_scores(positive: Array, area: float, generator: np.random.Generator) -> Array:
    """N(d, 1) of positive rows against N(0, 1)."""
    return generator.normal(positive * NORMAL.inv_cdf(area) * sqrt(2), 1)


def normal_false_positives(recall: Array, area: float) -> Array:
    """The false positive rate at a recall."""
    apart = NORMAL.inv_cdf(area) * sqrt(2)
    return np.array([NORMAL.cdf(NORMAL.inv_cdf(rate) - apart) for rate in recall])


def exponential_scores(positive: Array, area: float, generator: np.random.Generator) -> Array:
    """Positive rows have a greater mean: some of them are ranked among the lowest, as normal ones never are."""
    return generator.exponential(np.where(positive, area / (1 - area), 1.0))


def exponential_false_positives(recall: Array, area: float) -> Array:
    """As for normal scores."""
    return np.asarray(recall ** (area / (1 - area)))


@dataclass(frozen=True)
class Rows:
    """A kind of rows.

    Attributes:
        name: What they are called.
        scores: Draws them.
        false_positives: Their ROC curve.
        weighted: Whether they have weights, exponentially distributed.
    """

    name: str
    scores: Callable[[Array, float, np.random.Generator], Array]
    false_positives: Callable[[Array, float], Array]
    weighted: bool = False


KINDS = (
    Rows("normal scores", normal_scores, normal_false_positives),
    Rows("normal scores, rows with weights", normal_scores, normal_false_positives, weighted=True),
    Rows("exponential scores", exponential_scores, exponential_false_positives),
)
ROC, PRECISION_RECALL, DIFFERENCE = "AUC", "area under precision-recall", "AUC's difference from the baseline's"


@dataclass(frozen=True)
class Coverage:
    """What came of the draws of one cell of the grid.

    Attributes:
        kind: The rows' name.
        measure: What was measured.
        rows: How many rows an evaluation had.
        positives: The chance of a row to be positive.
        area: The true AUC.
        draws: How many evaluations there were.
        shown: How many of them had an interval.
        held: How many of these held the truth.
        weighted: Whether the rows had weights: then an interval may be too wide.
    """

    kind: str
    measure: str
    rows: int
    positives: float
    area: float
    draws: int
    shown: int
    held: int
    weighted: bool

    @property
    def met(self) -> bool:
        """Whether enough intervals hold the truth, and not too many.

        Where most evaluations say that there are too few rows, those that do not are the unusual ones: of them it is
        asked that not more of all evaluations say what is wrong.
        """
        if self.shown < self.draws / 2:
            return (self.shown - self.held) / self.draws <= 1 - AT_LEAST
        share, error = self.held / self.shown, ERRORS * sqrt(0.95 * 0.05 / self.shown)
        return share >= AT_LEAST - error and (self.weighted or share <= AT_MOST + error)


def precision_recall_truth(kind: Rows, positives: float, area: float) -> float:
    """The true area under the precision-recall curve."""
    steps = (np.arange(20_000) + 0.5) / 20_000
    # Finer where recall is small: there precision changes most.
    recall, widths = steps**3, 3 * steps**2 / 20_000
    true, false = positives * recall, (1 - positives) * kind.false_positives(recall, area)
    return float((true / (true + false) * widths).sum())


def measure(kind: Rows, draws: int, cell: tuple[int, float, float]) -> list[Coverage]:
    """Draws the evaluations of one cell: rows, share of positives, true AUC."""
    rows, positives, area = cell
    generator = np.random.default_rng([SEED, rows, round(1000 * positives), round(1000 * area)])
    noisy = NORMAL.cdf(NORMAL.inv_cdf(area) / sqrt(1 + NOISE**2))
    truths = {ROC: area, PRECISION_RECALL: precision_recall_truth(kind, positives, area)}
    if kind.scores is normal_scores:
        truths[DIFFERENCE] = area - noisy
    shown, held = dict.fromkeys(truths, 0), dict.fromkeys(truths, 0)
    for _ in range(draws):
        positive = generator.random(rows) < positives
        scores = kind.scores(positive, area, generator)
        weights = generator.exponential(size=rows) if kind.weighted else np.ones(rows)
        if positive.all() or not positive.any():
            continue
        for name, estimate in _estimates(positive, scores, weights, generator):
            if name in truths and (interval := estimate.interval(estimate.value, ALL_ROWS)):
                shown[name] += 1
                held[name] += interval.low <= truths[name] <= interval.high
    return [Coverage(kind.name, name, *cell, draws, shown[name], held[name], kind.weighted) for name in truths]


def _estimates(
    positive: Array, scores: Array, weights: Array, generator: np.random.Generator
) -> Iterator[tuple[str, Estimate]]:
    """What the Evaluator would show, and would have an interval."""
    ours = areas.roc(positive, scores, weights)
    if areas.too_few(positive, weights, [ours.value], areas.MISRANKED_FOR_ROC) is None:
        yield ROC, estimates.area(ours.value, ours.standard_error, "")
    if areas.too_few(positive, weights, [ours.value], areas.MISRANKED_FOR_PRECISION_RECALL) is None:
        curve = areas.precision_recall(positive, scores, weights)
        yield PRECISION_RECALL, estimates.area(curve.value, curve.standard_error, "")
    theirs = areas.roc(positive, scores + generator.normal(0, NOISE, len(scores)), weights)
    if areas.too_few(positive, weights, [ours.value, theirs.value], areas.MISRANKED_FOR_ROC) is None:
        yield DIFFERENCE, estimates.area_difference(ours.value - theirs.value, ours, theirs, "")


@click.command(context_settings=command.HELP)
@click.option("--draws", default=2000, show_default=True, type=click.IntRange(min=100), help="Evaluations a cell.")
@command.JSON_OPTION
def main(draws: int, json_path: Path | None) -> None:
    """Show in how many of 100 evaluations the 95 % intervals of areas under curves hold the true value.

    Exit codes: 0, or 1 if a cell of the grid is beyond 93 to 97 % by more than the simulation's error.
    """
    console = Console()
    cells = list(product(ROWS, POSITIVES, AREAS))
    found: list[Coverage] = []
    with ProcessPoolExecutor() as processes:
        for kind in KINDS:
            measured = processes.map(partial(measure, kind, draws), cells)
            found += [coverage for of_cell in measured for coverage in of_cell]
    for name in dict.fromkeys((coverage.kind, coverage.measure) for coverage in found):
        console.print(_table([coverage for coverage in found if (coverage.kind, coverage.measure) == name]))
        console.print()
    missed = [coverage for coverage in found if not coverage.met]
    said = sum(coverage.shown > 0 and coverage.shown >= coverage.draws / 2 for coverage in found)
    console.print(f"{said} of {len(found)} cells have an interval; {len(missed)} are beyond the bar.")
    command.write_json(json_path, [asdict(coverage) | {"met": coverage.met} for coverage in found])
    sys.exit(1 if missed else 0)


def _table(cells: list[Coverage]) -> Table:
    """Coverage in percent; in brackets how many percent of the evaluations have too few rows for an interval."""
    title = f"{cells[0].measure}, {cells[0].kind}: coverage in % (too few to tell in %)"
    table = command.new_table("Rows", "Positives", *(f"AUC {area}" for area in AREAS), title=title)
    for rows, positives in product(ROWS, POSITIVES):
        line = [cell for cell in cells if (cell.rows, cell.positives) == (rows, positives)]
        table.add_row(f"{rows:,}", f"{positives:.0%}", *map(_shown, line))
    return table


def _shown(cell: Coverage) -> Text:
    few = round(100 * (1 - cell.shown / cell.draws))
    if cell.shown < cell.draws / 2:
        return Text(f"too few ({few})", style="dim" if cell.met else "bold red")
    return Text(f"{100 * cell.held / cell.shown:.1f} ({few})", style="" if cell.met else "bold red")


if __name__ == "__main__":
    main()
