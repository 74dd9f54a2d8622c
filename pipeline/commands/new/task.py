"""What is to be predicted: classes or an amount; and what must not be learned from, since it says the label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contracts.errors import DataError
from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells, Table

MAX_CLASSES = 50
MAX_NUMBERED_CLASSES = 10
"""Whole numbers of at most this many values, from 0 or 1 without gaps, are classes."""

RARE_CLASS = 0.2
"""A class with a smaller part of its even share of the rows than this is named, and weighed."""

CLEARLY_RARER = 0.4
"""Of two classes, one with a smaller share of the rows than this is taken for what is looked for."""

FEW_ROWS = 10
"""A class needs more rows than this to be learned and judged."""

TELLS = 0.999
"""A column that tells the label of at least this share of the rows, alone, is a copy of the label."""

POSITIVE = ("yes", "true", "y", "t", "1", "positive", "pos", "malignant", "spam", "churned", "survived")


@dataclass(frozen=True)
class Task:
    """What is predicted.

    Attributes:
        label: The column.
        classes: By id, as text; of two, the second is the one whose probability is given. Empty for an amount.
        counts: Rows of each class, in that order.
        missing: Rows without a label.
        mean: An amount's.
        deviation: An amount's standard deviation.
    """

    label: str
    classes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    missing: int = 0
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def name(self) -> str:
        """In words."""
        if not self.classes:
            return "regression"
        return "two classes" if len(self.classes) == 2 else f"{len(self.classes)} classes"

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    @property
    def rare(self) -> list[str]:
        """The classes that few rows belong to."""
        return [
            name for name, rows in zip(self.classes, self.counts, strict=True) if rows < RARE_CLASS * sum(self.counts)
        ]


def task_of(found: Found, cells: Cells) -> Task:
    """The task that a label column sets.

    Args:
        found: What the label's column holds.
        cells: The label of each row, as ingest reads it; None where there is none.

    Raises:
        DataError: Nothing can be learned from these labels.
    """
    present = [cell for cell in cells if cell is not None and cell == cell]
    missing = len(cells) - len(present)
    if any(isinstance(cell, list) for cell in present):
        raise DataError(
            f"the label {found.name} holds lists, expected one value a row.",
            "Give each of the labels a column of its own; docs/training.md, 'Several outputs', shows their recipe.",
        )
    counts = Counter(map(as_text, present))
    if len(counts) < 2:
        received = f"{next(iter(counts))!r} in every row" if counts else "no value in any row"
        raise DataError(
            f"the label {found.name} has {received}, expected at least two different values.", "Check --label."
        )
    if found.use == "date" or (found.use in ("text", "hash", "left out") and any(isinstance(c, str) for c in present)):
        raise DataError(
            f"the label {found.name} has {len(counts):,} different texts in {len(present):,} rows, expected classes or "
            "numbers.",
            "Name another column by --label.",
        )
    if _are_classes(present, len(counts)):
        classes = _ordered(counts)
        return Task(found.name, classes, tuple(counts[name] for name in classes), missing)
    amounts = np.array(present, np.float64)
    return Task(found.name, missing=missing, mean=float(amounts.mean()), deviation=float(amounts.std()))


def as_text(value: object) -> str:
    """A label as features.py compares it: 1.0 is `1`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _are_classes(present: Sequence[object], distinct: int) -> bool:
    if distinct == 2 or any(isinstance(value, str) for value in present):
        return distinct <= MAX_CLASSES or any(isinstance(value, str) for value in present)
    numbers = {float(value) for value in present}  # type: ignore[arg-type]
    gapless = min(numbers) in (0, 1) and max(numbers) - min(numbers) == distinct - 1
    return gapless and distinct <= MAX_NUMBERED_CLASSES and all(number.is_integer() for number in numbers)


def _ordered(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The classes in the order of their ids; of two, the one that is looked for last."""
    names = sorted(counts, key=lambda name: (0, float(name), "") if name.lstrip("-").isdecimal() else (1, 0.0, name))
    if len(names) == 2 and not names[1].isdecimal():
        wanted = [name for name in names if name.lower() in POSITIVE]
        rarer = min(names, key=lambda name: counts[name])
        is_rare = counts[rarer] < CLEARLY_RARER * sum(counts.values())
        chosen = wanted[0] if len(wanted) == 1 else rarer if is_rare else names[1]
        names = [*(name for name in names if name != chosen), chosen]
    return tuple(names)


def tells_label(cells: Cells, labels: Sequence[str | float], is_amount: bool) -> bool:
    """Whether a column alone tells the label of nearly every row.

    Args:
        cells: The column's.
        labels: Classes or amounts.
        is_amount: Which of these.
    """
    known = [row for row, cell in enumerate(cells) if cell is not None]
    if len(known) < len(cells) // 2 or len(known) < FEW_ROWS:
        return False
    values = [cells[row] for row in known]
    wanted = [labels[row] for row in known]
    numeric = not any(isinstance(value, str) for value in values)
    if is_amount:
        if not numeric or len(set(values)) == 1:
            return False
        return bool(abs(np.corrcoef(np.array(values, float), np.array(wanted, float))[0, 1]) >= TELLS)
    if numeric:
        return _cuts_tell(np.array(values, float), np.array([str(label) for label in wanted]))
    by_value: dict[object, Counter[object]] = defaultdict(Counter)
    for value, label in zip(values, wanted, strict=True):
        by_value[value][label] += 1
    return len(by_value) <= len(known) // 2 and _share(by_value.values(), len(known)) >= TELLS


def _cuts_tell(values: npt.NDArray[np.float64], labels: npt.NDArray[np.str_]) -> bool:
    """Whether cutting the range of a number into as many parts as there are classes tells them apart."""
    order = np.argsort(values, kind="stable")
    classes = len(set(labels))
    changes = int((labels[order][1:] != labels[order][:-1]).sum())
    return changes <= classes - 1 + int((1 - TELLS) * len(labels))


def _share(counts: object, rows: int) -> float:
    return sum(max(by_label.values()) for by_label in counts) / rows  # type: ignore[attr-defined]


def rows_in_both_splits(table: Table, kept: Sequence[str]) -> int:
    """How many rows outside the training split equal one in it, in the columns that are kept.

    Args:
        table: All rows.
        kept: The columns that are learned from, and the label.
    """
    if not kept:
        return 0
    rows = list(zip(*(table.columns[name] for name in kept), strict=True))
    trained = {row for row, inside in zip(rows, table.in_training, strict=True) if inside}
    return sum(row in trained for row, inside in zip(rows, table.in_training, strict=True) if not inside)
