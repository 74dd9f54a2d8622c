"""The proof that serving computes what was trained and evaluated: every row that was kept, asked in every way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from components.infra_validator.comparison import culprit, distances, excesses, shown
from components.infra_validator.sample import Array, Batch
from components.infra_validator.ways import EXAMPLES, FEATURES, TRANSFORMED, Way
from contracts.model_reports import PathDifference

SINGLE_ROWS = 4
"""How many rows are also sent one at a time, which changes whatever the model computes over a batch."""


@dataclass(frozen=True)
class Worst:
    """The row in which an output differs most.

    Attributes:
        output: The output's name.
        excess: The difference as a multiple of the tolerance.
        row: The row, as a batch of one.
        good: The row of the same batch that differs least.
        got: The answer, [1, ...]; None if there was none.
        expected: What it is compared with.
    """

    output: str
    excess: float
    row: Batch
    good: Batch
    got: Array | None
    expected: Array


def compare(way: Way, batches: Sequence[Batch], ways: Mapping[str, Way]) -> list[PathDifference]:
    """The output that differs most over all rows, followed by any others that differ by too much.

    Args:
        way: How the model is asked.
        batches: The rows.
        ways: All ways by name, to find the feature that causes a difference.
    """
    askable = [batch.take(positions) for batch in batches if len(positions := way.can_ask(batch))]
    single_rows = [askable[0].take([row]) for row in range(min(SINGLE_ROWS, len(askable[0].rows)))] if askable else []
    worst: dict[str, Worst] = {}
    differing: dict[str, set[int]] = {}
    for batch in [*askable, *single_rows]:
        for candidate, row_excesses in _worst_of(way, batch):
            differing.setdefault(candidate.output, set()).update(np.array(batch.numbers)[row_excesses > 1].tolist())
            if candidate.output not in worst or candidate.excess > worst[candidate.output].excess:
                worst[candidate.output] = candidate
    rows = sum(len(batch.rows) for batch in askable)
    by_excess = sorted(worst.values(), key=lambda one: -one.excess)
    return [
        _described(way, entry, rows, len(differing[entry.output]), ways)
        for position, entry in enumerate(by_excess)
        if position == 0 or entry.excess > 1
    ]


def _worst_of(way: Way, batch: Batch) -> Iterator[tuple[Worst, Array]]:
    """The worst row of a batch for each output, and how far every row is off."""
    got, expected = way.ask(batch), way.expected(batch)
    missing = {name: np.full(len(batch.rows), np.inf) for name in expected.keys() - got.keys()}
    row_excesses = excesses(got, {name: expected[name] for name in expected if name in got}, way.tolerance) | missing
    overall = np.max(list(row_excesses.values()), axis=0)
    best_row = batch.take([int(np.argmin(overall))])
    for name, output_excesses in row_excesses.items():
        row = int(np.argmax(output_excesses))
        worst_answer = got[name][row : row + 1] if name in got and len(got[name]) == len(batch.rows) else None
        excess, right_answer = float(output_excesses[row]), expected[name][row : row + 1]
        yield Worst(name, excess, batch.take([row]), best_row, worst_answer, right_answer), output_excesses


def _described(way: Way, worst: Worst, rows: int, differing: int, ways: Mapping[str, Way]) -> PathDifference:
    return PathDifference(
        path=way.name,
        rows=rows,
        differing=differing,
        difference=_distance(worst),
        tolerance=way.tolerance,
        output=worst.output,
        row=worst.row.numbers[0] if worst.excess else None,
        got="nothing" if worst.got is None else shown(worst.got),
        expected=shown(worst.expected),
        feature=_feature(way, worst, ways) if worst.excess else None,
    )


def _distance(worst: Worst) -> float | None:
    """The largest absolute difference of the row's floats; None if it has no floats or the difference is not finite."""
    if not worst.excess:
        return 0.0
    if worst.got is None or worst.got.shape != worst.expected.shape or worst.expected.dtype.kind != "f":
        return None
    largest = float(distances(worst.got, worst.expected).max(initial=0.0))
    return largest if np.isfinite(largest) else None


def _feature(way: Way, worst: Worst, ways: Mapping[str, Way]) -> str | None:
    """The feature that makes a row's answer differ; None if no single feature is to blame."""
    if way.name == FEATURES:
        return worst.output
    if features := ways.get(FEATURES):
        feature_excesses = excesses(features.ask(worst.row), features.expected(worst.row), features.tolerance)
        name = max(feature_excesses, key=lambda feature: float(feature_excesses[feature][0]), default="")
        # A feature within its tolerance does not cause a difference that is too large.
        if name and feature_excesses[name][0] > (1 if worst.excess > 1 else 0):
            return name
    reference = ways.get({"raw": EXAMPLES, "transformed": TRANSFORMED}.get(way.takes, ""))
    if reference is None or reference is way or worst.excess <= 1:
        return None

    def disagreement(rows: Sequence[Mapping[str, Any]]) -> Array:
        batch = _of_rows(worst.row, rows, way.takes)
        answers, reference_answers = way.ask(batch), reference.ask(batch)
        return np.asarray(np.max(list(excesses(answers, reference_answers, way.tolerance).values()), axis=0))

    return culprit(_as_row(worst.row, way.takes), _as_row(worst.good, way.takes), disagreement)


def _as_row(batch: Batch, takes: str) -> dict[str, Any]:
    """The values of a batch of one row, by feature."""
    if takes == "transformed":
        return {name: values[0] for name, values in batch.transformed.items()}
    features = batch.examples[0].features.feature
    return {name: features[name].SerializeToString(deterministic=True) for name in features}


def _of_rows(template: Batch, rows: Sequence[Mapping[str, Any]], takes: str) -> Batch:
    """Rows by feature as a batch whose predictions have the types of `template`'s."""
    repeated = template.take([0] * len(rows))
    if takes == "transformed":
        return replace(repeated, transformed={name: np.stack([row[name] for row in rows]) for name in rows[0]})
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={name: tf.train.Feature.FromString(value) for name, value in row.items()}
            )
        )
        for row in rows
    ]
    return replace(repeated, rows=[example.SerializeToString(deterministic=True) for example in examples])
