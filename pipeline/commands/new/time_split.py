"""Whether rows are better split by time: learned from while they are old, judged on while they are new."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.example_gen.conversion import iso_seconds
from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells

NEWEST = 0.2
"""The share of the rows to be judged on."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.35
"""Where many rows have the same date, no boundary may come near to that share."""

FEWEST_JUDGED = 20
DAY = 86_400

_BIRTH = re.compile(r"birth|born|(^|[_\s.-])dob($|[_\s.-])|geburt|naissance|nacimiento", re.IGNORECASE)
"""Names of dates at which a row was not made."""

Moments = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Boundary:
    """Where newer rows begin.

    Attributes:
        column: The date.
        start: The first date, or moment in ISO 8601, of those to be judged on.
        newer: How many labeled rows these are.
    """

    column: str
    start: date | str
    newer: int


def boundary(
    columns: Sequence[Found], cells: Callable[[str], Cells], labels: Sequence[object], are_classes: bool
) -> Boundary | None:
    """Where to split by the first column that says when each row was made; None if there is none.

    Args:
        columns: What is learned from.
        cells: A column's, as ingest reads them, of all rows.
        labels: Of each row; None where there is none.
        are_classes: Whether each must be among the older rows, and more than one among the newer.
    """
    labeled = np.array([label is not None for label in labels])
    wanted = np.array([str(label) for label in labels])[labeled]
    for column in columns:
        if column.use != "date" or column.missing or _BIRTH.search(column.name):
            continue
        moments = moments_of(cells(column.name))
        if np.isnan(moments).any():
            continue
        for start, moment in _candidates(moments[labeled]):
            newer = moments[labeled] >= moment
            suits = LEAST_SHARE <= newer.mean() <= MOST_SHARE and newer.sum() >= FEWEST_JUDGED
            if are_classes and suits:
                suits = len(set(wanted[newer])) > 1 and set(wanted[~newer]) == set(wanted)
            if suits:
                return Boundary(column.name, start, int(newer.sum()))
    return None


def moments_of(cells: Cells) -> Moments:
    """Dates as ingest reads them, text or seconds, in seconds since 1970; NaN where missing: (rows,)."""
    known = np.array([cell is not None for cell in cells])
    moments = np.full(len(cells), np.nan)
    present = cells[known]
    if any(isinstance(cell, str) for cell in present):
        moments[known] = iso_seconds(pa.array([str(cell) for cell in present]))
    else:
        moments[known] = present.astype(np.float64)
    return moments


def _candidates(moments: Moments) -> Iterator[tuple[date | str, float]]:
    """Yields boundaries to try, in text and in seconds: whole days first, which are easier to read."""
    exact = float(np.sort(moments)[int((1 - NEWEST) * len(moments))])
    for day in (exact // DAY * DAY, exact // DAY * DAY + DAY):
        yield datetime.fromtimestamp(day, timezone.utc).date(), day
    if exact % DAY:
        yield datetime.fromtimestamp(exact, timezone.utc).replace(tzinfo=None).isoformat(), exact
