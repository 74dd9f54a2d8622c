"""Several columns to be predicted at once, each of which says yes or no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from components.example_gen.conversion import BOOLEANS
from contracts.errors import DataError
from pipeline.commands.new.table import Cells, Table
from pipeline.commands.new.task import Task, as_text

TOGETHER = "labels"
"""What the columns are called together, unless a column has that name."""


def types_of(columns: Sequence[str], raw: Table) -> dict[str, str]:
    """What `data.columns` must declare so that ingest makes 0 and 1 of these columns.

    Raises:
        DataError: One of them has other values, none in some row, or the same in all.
    """
    types = {}
    for column in columns:
        texts = {None if cell is None else as_text(cell) for cell in raw.columns[column]}
        odd = sorted(text for text in texts if text is not None and text.lower() not in BOOLEANS)
        if odd or len({BOOLEANS[text.lower()] for text in texts if text}) < 2:
            received = f"{odd[0]!r}" if odd else "the same value in every row"
            raise DataError(
                f"the label {column} has {received}, expected 0 and 1, yes and no, or true and false: so it must be "
                "where several columns are predicted.",
                "Give one --label alone, or mend that column.",
            )
        if None in texts:
            missing = sum(cell is None for cell in raw.columns[column])
            raise DataError(
                f"the label {column} is missing in {missing:,} of {raw.rows:,} rows, expected 0 or 1 in each.",
                "Fill in what is missing, or leave these rows out of the data.",
            )
        if not all(text in ("0", "1") for text in texts):
            types[column] = "bool"
    return types


def together(columns: Sequence[str], table: Table) -> Table:
    """The same rows with one column of lists in place of these.

    Args:
        columns: Each 0 or 1, as ingest reads them.
        table: All rows.
    """
    others = {name: cells for name, cells in table.columns.items() if name not in columns}
    cells: Cells = np.full(table.rows, None)
    for row, values in enumerate(zip(*(table.columns[name] for name in columns), strict=True)):
        cells[row] = [name for name, value in zip(columns, values, strict=True) if value]
    return replace(table, columns=others | {name_of(list(table.columns)): cells})


def task_of(columns: Sequence[str], table: Table) -> Task:
    """What is predicted.

    Args:
        columns: The labels.
        table: What `together` returned.
    """
    label = next(reversed(table.columns))
    counts = Counter(name for names in table.columns[label] for name in names)
    return Task(label, tuple(columns), tuple(counts[name] for name in columns), several=True, flags=True)


def name_of(columns: Sequence[str]) -> str:
    """What several labels are called together: a name that none of these columns has."""
    name = TOGETHER
    while name in columns:
        name += "_"
    return name
