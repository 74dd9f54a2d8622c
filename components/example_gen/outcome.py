"""What became of the rows: what ends the run, and what people should know of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.example_gen.checks import INFINITE, LABEL, OVERFLOW, PADDED, Fault, merge_faults
from components.example_gen.oddities import Oddity, merge_oddities
from components.example_gen.settings import DataSettings
from contracts.errors import DataError


@dataclass(frozen=True)
class Outcome:
    """What became of the rows of a shard, or of several.

    Attributes:
        shard: The index of the first.
        rows: Split -> how many rows were written to it.
        rejected: How many were set aside.
        faults: What was wrong with labels and numbers.
        oddities: Columns that may be text by mistake.
        kinds: The kinds of all columns, by name.
    """

    shard: int
    rows: Mapping[str, int]
    rejected: int = 0
    faults: Sequence[Fault] = ()
    oddities: Sequence[Oddity] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """How many rows were written."""
        return sum(self.rows.values())

    @property
    def infinite(self) -> dict[str, int]:
        """The columns with numbers that are written as infinite, and in how many rows."""
        return {fault.column: fault.rows for fault in self.faults if fault.kind == INFINITE}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Outcome:
        """The inverse of `dataclasses.asdict`."""
        faults = [Fault(**fault) for fault in values["faults"]]
        oddities = [Oddity(**oddity) for oddity in values["oddities"]]
        return cls(**values | {"faults": faults, "oddities": oddities})


def merge_outcomes(parts: Sequence[Outcome]) -> Outcome:
    """Adds up the outcomes of all shards, which may come in any order."""
    ordered = sorted(parts, key=lambda part: part.shard)
    rows: Counter[str] = Counter()
    for part in ordered:
        rows.update(part.rows)
    return Outcome(
        ordered[0].shard,
        dict(rows),
        sum(part.rejected for part in ordered),
        merge_faults([fault for part in ordered for fault in part.faults]),
        merge_oddities([part.oddities for part in ordered]),
        # Shards are written when the kinds of all of them are known.
        ordered[0].kinds,
    )


def check_outcome(outcome: Outcome, settings: DataSettings, file: str) -> None:
    """Ends the run where the settings say so, or where a split is empty.

    Args:
        outcome: Of all shards.
        settings: The recipe's `data` section.
        file: The first file, for the message.

    Raises:
        DataError: Rows lack their label, numbers do not fit, or a split has no rows.
    """
    for fault in outcome.faults:
        if fault.kind == LABEL and settings.on_missing_label == "fail":
            raise DataError(
                f"{_rows(fault.rows)} of {_total(outcome):,} {_have(fault.rows)} no label {fault.column!r}; "
                f"the first is {fault.where}.",
                "Give them one, or set data.on_missing_label: set_aside to go on without such rows and have them "
                "collected, or keep if features.py knows what to make of them.",
            )
        if fault.kind == OVERFLOW and settings.on_overflow == "fail":
            raise DataError(
                f"column {fault.column!r}: {_rows(fault.rows)} {_have(fault.rows)} numbers that do not fit into a "
                f"float of 32 bits, at most 3.4e38; the first is {fault.text} in {fault.where}.",
                "Mend them, or set data.on_overflow: clip, set_aside or keep (as infinite).",
            )
    if not outcome.num_rows:
        raise DataError(
            f"All {outcome.rejected:,} rows of {file} were set aside, expected at least one good row.",
            "Set data.on_bad_row, on_missing_label and on_overflow to fail to see what is wrong with the first.",
        )
    if empty := [split for split in settings.splits if not outcome.rows.get(split)]:
        raise DataError(_empty_split(empty[0], outcome, settings), _fix_of_empty_split(settings))


def notes_on(outcome: Outcome, settings: DataSettings) -> list[str]:
    """What people should know of, a sentence each."""
    notes = []
    for fault in outcome.faults:
        if fault.kind == LABEL:
            done = {"set_aside": "set aside", "keep": "kept"}[settings.on_missing_label]
            notes.append(f"label {fault.column}: {_rows(fault.rows)} without one {done}, first {fault.where}")
        elif fault.kind == PADDED:
            notes.append(
                f"column {fault.column}: leading zeros are lost, as of {fault.text!r} in {fault.where}. "
                f"Where they matter, set data.columns: {{{fault.column}: text}}."
            )
        elif fault.kind == INFINITE:
            notes.append(
                f"column {fault.column}: infinite numbers in {_rows(fault.rows)}, first {fault.text} in {fault.where}"
            )
        else:
            done = {"set_aside": "rows set aside", "keep": "kept as infinite", "clip": "clipped"}[settings.on_overflow]
            notes.append(
                f"column {fault.column}: numbers beyond 32 bits in {_rows(fault.rows)}, first {fault.text} in "
                f"{fault.where}: {done}"
            )
    return notes + [f"{oddity}: read as text. {oddity.remedy}" for oddity in outcome.oddities]


def _empty_split(split: str, outcome: Outcome, settings: DataSettings) -> str:
    others = " and ".join(f"{count:,} in {name!r}" for name, count in outcome.rows.items() if count)
    rule = f"data.split_by is {settings.split_by!r}" if settings.split_by else f"data.splits is {dict(settings.splits)}"
    if by_time := settings.split_by_time:
        rule = f"data.split_by_time is by {by_time.column!r}, from {by_time.starts} on"
    return f"split {split!r} has no rows, expected some in every split; there are {others}; {rule}."


def _fix_of_empty_split(settings: DataSettings) -> str:
    if settings.split_by_time:
        return "Move data.split_by_time.starts to where the rows' times are."
    if settings.split_by:
        return "Rows with the same value stay together: choose a column with more values."
    if settings.patterns:
        return "Correct the pattern, or see why its files hold no good rows."
    return "More rows are needed than splits: add data."


def _total(outcome: Outcome) -> int:
    return outcome.num_rows + outcome.rejected


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
