"""Whether blessing by evidence keeps its promise, on simulated candidates: `python -m benchmarks.blessing`.

A candidate's measured value is its true one plus an error of its own: on one evaluation split it stays the same however
often the model is looked at, so that differences from the same model are correlated, as real ones are. The Evaluator's
own p-values and levels decide (components/evaluation/evidence.py); what its `decide` makes of them is tested apart.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console

from benchmarks import command
from benchmarks.command import Figure
from components.evaluation import evidence

MAX_LOSS = 0.01
SEED = 20_260_726
SEQUENCES, CANDIDATES = 1000, 1000
POWER_LOOKS = (1, 2, 10, 100)
POWER_LOSSES, POWER_ERROR = (0.0, 0.25, 0.5), 0.3
"""In units of `MAX_LOSS`."""

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, Floats], Floats]
"""From the true values of what is served, [sequences], to those of the next candidates."""


@dataclass(frozen=True)
class Scenario:
    """How candidates come about.

    Attributes:
        name: What it is called in the table.
        true_values: Draws them.
        error: The standard error of a difference, in units of `MAX_LOSS`.
    """

    name: str
    true_values: Draw
    error: float


def _worse(losses: float) -> Draw:
    """Candidates that are so many `MAX_LOSS` worse than what is served."""
    return lambda _generator, served: served - losses * MAX_LOSS


def _mixed(generator: np.random.Generator, served: Floats) -> Floats:
    """Candidates that are up to two `MAX_LOSS` worse than what is served; every third is as good."""
    losses = np.where(generator.random(served.shape) < 1 / 3, 0, generator.uniform(0, 2, served.shape))
    return np.asarray(served - losses * MAX_LOSS)


SCENARIOS = (
    Scenario("just too bad", _worse(1.0001), 0.3),
    Scenario("just too bad, few rows", _worse(1.0001), 1.0),
    Scenario("good and bad in turn", _mixed, 0.3),
    Scenario("each a little worse", _worse(0.5), 0.2),
    Scenario("each nearly too bad", _worse(0.9), 0.2),
)


@dataclass
class _Models:
    """A model a sequence: true and measured values, [sequences]."""

    true: Floats
    measured: Floats

    def replace(self, by: _Models, where: npt.NDArray[np.bool_]) -> None:
        self.true, self.measured = np.where(where, by.true, self.true), np.where(where, by.measured, self.measured)


_p_values = np.vectorize(evidence.p_value, otypes=[float])


def wrong_pushes(scenario: Scenario, sequences: int, candidates: int) -> tuple[float, float]:
    """Tries candidates one after the other; who passes is served.

    Returns:
        The share of sequences that pushed a candidate truly worse by more than `MAX_LOSS` than what was served or than
        the best of all that were served before; and the share of all candidates that were pushed.
    """
    generator = np.random.default_rng(SEED)
    error = scenario.error * MAX_LOSS
    # Of two models' errors each has half the variance of their difference.
    own_error = error / math.sqrt(2)

    def models(true: Floats) -> _Models:
        return _Models(true, true + generator.normal(0, own_error, sequences))

    served = models(np.zeros(sequences))
    reference = _Models(served.true, served.measured)
    best = np.zeros(sequences)
    handed_on, wrong, pushed = np.zeros(sequences), np.zeros(sequences, bool), 0
    for look in range(1, candidates + 1):
        candidate = models(scenario.true_values(generator, served.true))
        level = handed_on + evidence.share_of_look(look)
        losses = [candidate.measured - other.measured for other in (served, reference)]
        passed = np.all([_p_values(loss + MAX_LOSS, error) <= level for loss in losses], axis=0)
        wrong |= passed & (candidate.true < np.maximum(served.true, best) - MAX_LOSS)
        better = passed & (_p_values(losses[1], error) <= level)
        handed_on = np.where(passed, level, 0)
        served.replace(candidate, passed)
        reference.replace(candidate, better)
        best = np.maximum(best, np.where(passed, candidate.true, best))
        pushed += int(passed.sum())
    return float(wrong.mean()), pushed / sequences / candidates


def power(loss: float, earlier: list[bool]) -> float:
    """How likely a candidate passes that is truly worse by so many `MAX_LOSS`, after these looks at the same rows."""
    error = POWER_ERROR * MAX_LOSS
    end = evidence.quantile(evidence.look_level(earlier)) * error
    return evidence.p_value(end - (1 - loss) * MAX_LOSS, error)


@click.command(context_settings=command.HELP)
@click.option("--sequences", default=SEQUENCES, show_default=True, type=click.IntRange(min=1))
@click.option("--candidates", default=CANDIDATES, show_default=True, type=click.IntRange(min=1))
@command.JSON_OPTION
def main(sequences: int, candidates: int, json_path: Path | None) -> None:
    """Simulate candidates that are no better than what is served, tried one after the other on the same rows.

    Exit codes: 0, or 1 if more than 5 % of the sequences pushed one that is worse by more than max_loss.
    """
    figures = []
    for scenario in SCENARIOS:
        wrong, pushed = wrong_pushes(scenario, sequences, candidates)
        name = f"{scenario.name}: sequences with a wrong push"
        figures.append(Figure(name, 100 * wrong, at_most=100 * evidence.ERROR_RATE, unit=" %"))
        figures.append(Figure(f"{scenario.name}: candidates pushed", 100 * pushed, unit=" %"))
    for loss in POWER_LOSSES:
        for look in POWER_LOOKS:
            after_none, after_all = (100 * power(loss, [passed] * (look - 1)) for passed in (False, True))
            name = f"pushed at look {look}, truly {loss:g} max_loss worse"
            figures.append(Figure(f"{name}, none passed before", after_none, unit=" %", digits=0))
            figures.append(Figure(f"{name}, all passed before", after_all, unit=" %", digits=0))
    command.show_figures(Console(), f"{sequences:,} sequences of {candidates:,} candidates", figures)
    command.write_json(json_path, [figure.to_dict() for figure in figures])
    sys.exit(0 if all(figure.met for figure in figures) else 1)


if __name__ == "__main__":
    main()
