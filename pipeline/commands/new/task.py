"""What is to be predicted: classes or an amount; and what must not be learned from, since it says the label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from contracts.errors import DataError
from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells, Table

MAX_CLASSES = 1000
FEWEST_ROWS = 5
"""In the mean of classes, where there are many."""

MAX_NAMES = 500
"""Of several labels at once."""

SEPARATORS = (";", "|", ",", "/")
MARKED_SHARE = 0.1
"""A mark that fewer rows have is part of a name."""

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
        several: Whether a row may have any number of the classes, also none.
        separator: The mark between these in text; None if they are lists.
        flags: Whether the classes are columns of 0 and 1, and `label` is what these are called together.
        ignore_case: Whether `adelie` and `ADELIE` are one class.
        mean: An amount's.
        deviation: An amount's standard deviation.
    """

    label: str
    classes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    missing: int = 0
    several: bool = False
    separator: str | None = None
    flags: bool = False
    ignore_case: bool = False
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def name(self) -> str:
        """In words."""
        if not self.classes:
            return "regression"
        if self.several:
            return f"any of {len(self.classes)} names"
        return "two classes" if len(self.classes) == 2 else f"{len(self.classes)} classes"

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that hold the label."""
        return self.classes if self.flags else (self.label,)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2 and not self.several

    @property
    def rare(self) -> list[str]:
        """The classes that few rows belong to."""
        if self.several:
            return []
        return [
            name
            for name, rows in zip(self.classes, self.counts, strict=True)
            if rows < RARE_CLASS * sum(self.counts) / len(self.classes)
        ]

    def class_of(self, label: object) -> str:
        """The class that a row's label names."""
        text = as_text(label)
        if not self.ignore_case or text in self.classes:
            return text
        return next(name for name in self.classes if name.lower() == text.lower())


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
        return _several(found.name, cells, None)
    counts = Counter(map(as_text, present))
    if len(counts) < 2:
        received = f"{next(iter(counts))!r} in every row" if counts else "no value in any row"
        raise DataError(
            f"the label {found.name} has {received}, expected at least two different values.", "Check --label."
        )
    recurring = found.use == "hash" and len(counts) <= MAX_CLASSES and len(present) >= FEWEST_ROWS * len(counts)
    odd = found.use in ("text", "hash", "left out") and not recurring
    if found.use == "date" or (odd and any(isinstance(cell, str) for cell in present)):
        raise DataError(
            f"the label {found.name} has {len(counts):,} different texts in {len(present):,} rows, expected numbers "
            f"or at most {MAX_CLASSES:,} classes of {FEWEST_ROWS} rows each.",
            "Name another column by --label.",
        )
    if _are_classes(present, len(counts)):
        classes = _ordered(counts)
        return Task(found.name, classes, tuple(counts[name] for name in classes), missing)
    amounts = np.array(present, np.float64)
    return Task(found.name, missing=missing, mean=float(amounts.mean()), deviation=float(amounts.std()))


def spellings(task: Task) -> list[list[str]]:
    """The classes that differ only in case, the most frequent spelling of each first."""
    counts = dict(zip(task.classes, task.counts, strict=True))
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: -counts[name]):
        alike[name.lower()].append(name)
    return [names for names in alike.values() if len(names) > 1]


def without_case(task: Task) -> Task:
    """The same task with classes that differ only in case as one.

    Raises:
        DataError: There is but one class then.
    """
    other = {name: names[0] for names in spellings(task) for name in names}
    counts: Counter[str] = Counter()
    for name, rows in zip(task.classes, task.counts, strict=True):
        counts[other.get(name, name)] += rows
    if len(counts) < 2:
        raise DataError(
            f"the label {task.label} has {next(iter(counts))!r} in every row, expected at least two different values.",
            "Check --label.",
        )
    classes = _ordered(counts)
    return replace(task, classes=classes, counts=tuple(counts[name] for name in classes), ignore_case=True)


def separated(name: str, cells: Cells, separator: str) -> Task:
    """The task of a label column whose texts hold several names with a mark between them.

    Raises:
        DataError: Nothing can be learned from them.
    """
    return _several(name, cells, separator)


def separator_of(cells: Cells) -> str | None:
    """The mark between the names in a column of texts such as `red;round`; None if each is one name.

    It is one if names recur: there are fewer than half as many as different texts, and rows with one name alone or with
    the same in another company.
    """
    texts = [cell for cell in cells if isinstance(cell, str)]
    for mark in SEPARATORS:
        marked = [text for text in texts if mark in text]
        if len(marked) < MARKED_SHARE * max(len(texts), 1):
            continue
        names = Counter(name for text in texts for name in names_in(text, mark))
        if len(names) > 1 and len(names) <= MAX_NAMES and 2 * len(names) <= len(set(texts)):
            return mark
    return None


def names_in(cell: object, separator: str | None) -> list[str]:
    """The names in a row's label: a list's, or those in a text with a mark between them; none where it is missing."""
    if cell is None:
        return []
    held = cell if isinstance(cell, list) else str(cell).split(separator) if separator else [cell]
    return list(dict.fromkeys(name for name in map(as_text, held) if name))


def _several(label: str, cells: Cells, separator: str | None) -> Task:
    counts = Counter(name for cell in cells for name in names_in(cell, separator))
    if len(counts) > MAX_NAMES:
        raise DataError(
            f"the label {label} holds lists of {len(counts):,} different values, expected at most {MAX_NAMES:,} names.",
            "Name another column by --label, or group the rare ones.",
        )
    if not counts or all(rows == len(cells) for rows in counts.values()):
        received = f"{', '.join(counts)} in every row" if counts else "no value in any row"
        raise DataError(f"the label {label} has {received}, expected rows that differ.", "Check --label.")
    names = tuple(sorted(counts))
    return Task(label, names, tuple(counts[name] for name in names), several=True, separator=separator)


def as_text(value: object) -> str:
    """A label as features.py compares it: 1.0 is `1`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _are_classes(present: Sequence[object], distinct: int) -> bool:
    if distinct == 2 or any(isinstance(value, str) for value in present):
        return True
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
    rows = list(zip(*(_hashable(table.columns[name]) for name in kept), strict=True))
    trained = {row for row, inside in zip(rows, table.in_training, strict=True) if inside}
    return sum(row in trained for row, inside in zip(rows, table.in_training, strict=True) if not inside)


def _hashable(cells: Cells) -> Sequence[object]:
    if not any(isinstance(cell, list) for cell in cells):
        return cells  # type: ignore[return-value]
    return [tuple(cell) if isinstance(cell, list) else cell for cell in cells]
