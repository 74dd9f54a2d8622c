"""Columns that are text because of a few cells: 341 numbers and 2 `NA`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.contract import Batch
from components.example_gen.kinds import Kind

MAX_TEXTS = 5
"""A column with more different texts than these holds text."""

_SAMPLE = 1_000
_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class Oddity:
    """A column of numbers but for a few texts.

    Attributes:
        column: Its name.
        numbers: How many numbers it holds.
        texts: Every different text -> how often it occurs.
    """

    column: str
    numbers: int
    texts: Mapping[str, int]

    def __str__(self) -> str:
        found = ", ".join(f"{count:,} {text!r}" for text, count in self.texts.items())
        return f"column {self.column}: {self.numbers:,} numbers, {found}"

    @property
    def remedy(self) -> str:
        """The setting that would make numbers of it, as an imperative sentence."""
        listed = ", ".join(repr(text) for text in self.texts)
        return f"If these stand for missing values, set data.na_values: [{listed}]; else declare it in data.columns."


def count_texts(values: pa.Array) -> tuple[int, Counter[str]] | None:
    """Returns how many of the texts are numbers, and how often each other occurs; None if there are many others.

    Args:
        values: (values,) binary.
    """
    sample = values[:_SAMPLE]
    if 4 * pc.sum(pc.match_substring_regex(sample, _NUMBER), min_count=0).as_py() < len(sample):
        return None
    others = values.filter(pc.invert(pc.match_substring_regex(values, _NUMBER)))
    counts = Counter({entry["values"]: entry["counts"] for entry in pc.value_counts(others).to_pylist()})
    if len(counts) > MAX_TEXTS:
        return None
    return len(values) - len(others), Counter({text.decode("utf-8", "replace"): n for text, n in counts.items()})


class Watch:
    """Finds such columns while batches pass.

    Args:
        declared: The columns whose types are given, which are left alone.
    """

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared
        self._counts: dict[str, tuple[int, Counter[str]] | None] = {}

    def look(self, batch: Batch) -> None:
        """Counts what a batch holds."""
        for column in batch.columns:
            known = self._counts.get(column.name, (0, Counter()))
            if column.kind is not Kind.BYTES or column.name in self._declared or known is None:
                continue
            counted = count_texts(column.values)
            self._counts[column.name] = None if counted is None else (known[0] + counted[0], known[1] + counted[1])

    @property
    def oddities(self) -> list[Oddity]:
        """What was found so far."""
        return [Oddity(name, counts[0], dict(counts[1])) for name, counts in self._counts.items() if counts]


def merge_oddities(parts: Sequence[Sequence[Oddity]]) -> list[Oddity]:
    """Adds up the columns of several shards, and keeps those in which numbers are the rule.

    Args:
        parts: What each shard found; a column that one of them took for text is text.
    """
    merged: list[Oddity] = []
    for name in dict.fromkeys(oddity.column for part in parts for oddity in part):
        found = [oddity for part in parts for oddity in part if oddity.column == name]
        texts: Counter[str] = sum((Counter(oddity.texts) for oddity in found), Counter())
        numbers = sum(oddity.numbers for oddity in found)
        if len(found) == len(parts) and 0 < len(texts) <= MAX_TEXTS and numbers > texts.total():
            merged.append(Oddity(name, numbers, dict(texts)))
    return merged
