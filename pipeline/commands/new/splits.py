"""How rows are better split than at random: by time, or with the rows that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.commands.new import task as tasks
from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells, Table
from pipeline.commands.new.task import Task
from pipeline.commands.new.time_split import Boundary, boundary

Ask: TypeAlias = Callable[[str, bool], bool]
"""Takes a yes-or-no question and its default."""


def proposed(columns: Sequence[Found], table: Table, task: Task, ask: Ask) -> tuple[dict[str, Any], str]:
    """The settings of `data` for the split, and a note about it; empty where it is at random.

    Args:
        columns: What is learned from.
        table: All rows.
        task: What is predicted.
        ask: Asks the user.
    """
    newer = _newer_rows(columns, table, task)
    if newer and ask(
        f"Learn from rows before {newer.start} and judge by the {newer.newer:,} newer ones, as {newer.column} says "
        "(no: draw them at random)?",
        True,
    ):
        return {"split_by_time": {"column": newer.column, "starts": {"eval": newer.start}}}, (
            f"learns from rows whose {newer.column} is before {newer.start}, and is judged on later ones "
            "(data.split_by_time; without it, rows are drawn at random)"
        )
    repeated = next((column.name for column in columns if column.repeats), None)
    if repeated and ask(f"{repeated} repeats: keep all rows of one in the same split?", True):
        return {"split_by": repeated}, f"rows of one {repeated} stay in one split (data.split_by)"
    return {}, ""


def _newer_rows(columns: Sequence[Found], table: Table, task: Task) -> Boundary | None:
    if not table.is_whole:
        # The first rows of a log are its oldest.
        return None
    labels = np.full(table.rows, None)
    has_label = labeled(table.columns[task.label], task)
    labels[has_label] = labels_of(table.columns[task.label][has_label], task)
    return boundary(columns, table.columns.__getitem__, labels.tolist(), bool(task.classes) and not task.several)


def labels_of(present: Cells, task: Task) -> list[str | float]:
    """Classes as features.py compares them, several as one text, or amounts."""
    if task.several:
        return ["\0".join(sorted(tasks.names_in(cell, task.separator))) for cell in present]
    return [task.class_of(label) if task.classes else float(label) for label in present]


def labeled(labels: Cells, task: Task) -> npt.NDArray[np.bool_]:
    """Which rows have a label, (rows,)."""
    if task.several:
        return np.ones(len(labels), np.bool_)
    return np.array([label is not None and label == label for label in labels], np.bool_)
