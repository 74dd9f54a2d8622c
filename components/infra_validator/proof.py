"""The proof that serving computes what was trained and evaluated: every way of asking, on every row that was kept."""

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
"""How many rows are asked alone, too: what is computed over a batch is another thing there."""


@dataclass(frozen=True)
class Worst:
    """The row about which an output is most off.

    Attributes:
        output: Its name.
        excess: How many times of what is allowed it is off.
        row: The row alone.
        good: A row of the same batch that is off the least.
        got: The answer [1, ...]; None where there was none.
        wanted: What it is held to.
    """

    output: str
    excess: float
    row: Batch
    good: Batch
    got: Array | None
    wanted: Array


def compare(way: Way, batches: Sequence[Batch], ways: Mapping[str, Way]) -> list[PathDifference]:
    """How far the answers to all rows are off: first the output that is off most, then others that are off too far.

    Args:
        way: How they are asked.
        batches: The rows.
        ways: All ways by name, to find out which feature makes a difference.
    """
    asked = [batch.take(which) for batch in batches if len(which := way.can_ask(batch))]
    alone = [asked[0].take([row]) for row in range(min(SINGLE_ROWS, len(asked[0].rows)))] if asked else []
    worst: dict[str, Worst] = {}
    differing: dict[str, set[int]] = {}
    for batch in [*asked, *alone]:
        for found, off in _worst_of(way, batch):
            differing.setdefault(found.output, set()).update(np.array(batch.numbers)[off > 1].tolist())
            if found.output not in worst or found.excess > worst[found.output].excess:
                worst[found.output] = found
    rows = sum(len(batch.rows) for batch in asked)
    by_excess = sorted(worst.values(), key=lambda one: -one.excess)
    return [
        _described(way, one, rows, len(differing[one.output]), ways)
        for position, one in enumerate(by_excess)
        if position == 0 or one.excess > 1
    ]


def _worst_of(way: Way, batch: Batch) -> Iterator[tuple[Worst, Array]]:
    """Of each output the worst row of a batch, and how far each row is off."""
    got, wanted = way.ask(batch), way.wanted(batch)
    missing = {name: np.full(len(batch.rows), np.inf) for name in wanted.keys() - got.keys()}
    found = excesses(got, {name: wanted[name] for name in wanted if name in got}, way.tolerance) | missing
    overall = np.max(list(found.values()), axis=0)
    good = batch.take([int(np.argmin(overall))])
    for name, off in found.items():
        row = int(np.argmax(off))
        answer = got[name][row : row + 1] if name in got and len(got[name]) == len(batch.rows) else None
        yield Worst(name, float(off[row]), batch.take([row]), good, answer, wanted[name][row : row + 1]), off


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
        expected=shown(worst.wanted),
        feature=_feature(way, worst, ways) if worst.excess else None,
    )


def _distance(worst: Worst) -> float | None:
    """The largest absolute difference of the row's floats; None if it has none, or not finite ones."""
    if not worst.excess:
        return 0.0
    if worst.got is None or worst.got.shape != worst.wanted.shape or worst.wanted.dtype.kind != "f":
        return None
    largest = float(distances(worst.got, worst.wanted).max(initial=0.0))
    return largest if np.isfinite(largest) else None


def _feature(way: Way, worst: Worst, ways: Mapping[str, Way]) -> str | None:
    """The feature that makes a row's answer another; None where all features agree and none of them is to blame."""
    if way.name == FEATURES:
        return worst.output
    if features := ways.get(FEATURES):
        off = excesses(features.ask(worst.row), features.wanted(worst.row), features.tolerance)
        name = max(off, key=lambda feature: float(off[feature][0]), default="")
        # A difference that is too large does not come from one that is not.
        if name and off[name][0] > (1 if worst.excess > 1 else 0):
            return name
    reference = ways.get({"raw": EXAMPLES, "transformed": TRANSFORMED}.get(way.takes, ""))
    if reference is None or reference is way or worst.excess <= 1:
        return None

    def disagreement(rows: Sequence[Mapping[str, Any]]) -> Array:
        batch = _of_rows(worst.row, rows, way.takes)
        one, other = way.ask(batch), reference.ask(batch)
        return np.asarray(np.max(list(excesses(one, other, way.tolerance).values()), axis=0))

    return culprit(_as_row(worst.row, way.takes), _as_row(worst.good, way.takes), disagreement)


def _as_row(batch: Batch, takes: str) -> dict[str, Any]:
    """The values of a batch of one row, by feature."""
    if takes == "transformed":
        return {name: values[0] for name, values in batch.transformed.items()}
    features = batch.examples[0].features.feature
    return {name: features[name].SerializeToString(deterministic=True) for name in features}


def _of_rows(like: Batch, rows: Sequence[Mapping[str, Any]], takes: str) -> Batch:
    """Rows by feature as a batch whose predictions are of `like`'s types."""
    many = like.take([0] * len(rows))
    if takes == "transformed":
        return replace(many, transformed={name: np.stack([row[name] for row in rows]) for name in rows[0]})
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={name: tf.train.Feature.FromString(value) for name, value in row.items()}
            )
        )
        for row in rows
    ]
    return replace(many, rows=[example.SerializeToString(deterministic=True) for example in examples])
