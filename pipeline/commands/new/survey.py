"""From the user's files to a plan: reads them, looks at every column, asks what only the user can know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.example_gen.images_source import COLUMNS as IMAGE_COLUMNS
from components.example_gen.settings import DataSettings
from contracts.errors import DataError, SettingsError
from contracts.near_names import did_you_mean
from pipeline.commands.new import baseline, flags, splits
from pipeline.commands.new import task as tasks
from pipeline.commands.new.columns import Found, has_decimal_commas, look_at
from pipeline.commands.new.images import ImageCell, seen_size
from pipeline.commands.new.plan import Plan
from pipeline.commands.new.splits import Ask
from pipeline.commands.new.table import MAX_ROWS, Cells, Table, read, sniff
from pipeline.commands.new.task import Task
from pipeline.commands.new.time_split import moments_of

FEWEST_ROWS = 20
SHOWN = 10
"""Names in a note."""


def survey(name: str, command: str, path: str, labels: Sequence[str], root: Path, ask: Ask) -> Plan:
    """Looks at the data.

    Args:
        name: The recipe to be.
        command: The command line, for the recipe's files.
        path: `data.path`.
        labels: The column to be predicted, or several; none for a folder of images, whose classes are folders.
        root: What relative paths begin at.
        ask: Asks the user.

    Raises:
        MillraceError: The data cannot be read, or nothing can be learned from them.
    """
    data: dict[str, Any] = {"path": path} | sniff(path, root)
    raw = read(DataSettings(**data), root, as_text=True)
    labels = _checked_labels(path, raw, labels)
    found = _looked_at(raw)
    data |= _reading([column for column in found if len(labels) == 1 or column.name not in labels])
    if len(labels) > 1:
        data["columns"] = data.get("columns", {}) | flags.types_of(labels, raw)
    elif any(cell is None or cell in data.get("na_values", ()) for cell in raw.columns[labels[0]]):
        data["on_missing_label"] = "set_aside"
    table = _read(data, root, labels)
    task = _task([column for column in found if column.name in labels], table, ask)
    if task.several and not task.flags:
        # A row may have none of the names.
        data["on_missing_label"] = "keep"
    others = _with_one_image([column for column in found if column.name not in labels], table)
    columns, notes = _decided(others, table, task, ask)
    if table.unread:
        data["on_bad_row"] = "set_aside"
        notes.append(
            f"{len(table.unread):,} {'row' if len(table.unread) == 1 else 'rows'} without a readable image: left out "
            f"(data.on_bad_row); the first: {table.unread[0].as_error().what}"
        )
    flip = any(column.use == "image" for column in columns) and ask(
        "May images be mirrored in training (right for animals, wrong for digits)?", False
    )
    settings, note = splits.proposed(columns, table, task, ask)
    if settings:
        data |= settings
        notes.append(note)
        table = _read(data, root, labels)
    return replace(_planned(name, command, data, columns, table, task, notes), horizontal_flip=flip)


def _checked_labels(path: str, table: Table, labels: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(labels)) or [_label_of_folders(path, table)]
    for name in names:
        if name not in table.columns:
            raise SettingsError(f"{path} has no column {name!r}. {did_you_mean(name, list(table.columns))}")
    return names


def _looked_at(raw: Table) -> list[Found]:
    decimal_comma = has_decimal_commas(raw.columns.values())
    found = [look_at(column, cells, decimal_comma) for column, cells in raw.columns.items()]
    if _is_folder(raw):
        found = [_beside_image(column) if column.name in ("label", "name") else column for column in found]
    return found


def _read(data: dict[str, Any], root: Path, labels: Sequence[str]) -> Table:
    """The rows; several labels are one column of lists."""
    table = read(DataSettings(**data), root)
    return flags.together(labels, table) if len(labels) > 1 else table


def _is_folder(table: Table) -> bool:
    """Whether the rows are images in folders of their classes."""
    return list(table.columns) == list(IMAGE_COLUMNS)


def _label_of_folders(path: str, table: Table) -> str:
    if _is_folder(table):
        return "class"
    raise SettingsError(
        f"received no --label for {path}, expected one of its columns: {shown(list(table.columns))}.",
        "Name the column that is to be predicted; only a folder of images for each class needs none.",
    )


def _beside_image(column: Found) -> Found:
    """What a folder of images holds besides image and class."""
    why = "the number of the class" if column.name == "label" else "the image's file"
    return replace(column, use="left out", holds="the folder's", why=why, type=None, na_values=())


def _with_one_image(columns: Sequence[Found], table: Table) -> list[Found]:
    """The columns, of which the first one of images is seen in a size that suits them, and others are left out."""
    first = next((column.name for column in columns if column.use == "image"), None)
    decided = []
    for column in columns:
        if column.name == first:
            height, width, channels = size = seen_size(table.columns[column.name])
            kind = "in color" if channels > 1 else "in gray"
            column = replace(column, size=size, why=f"seen as {height} x {width} pixels {kind}")
        elif column.use == "image":
            column = replace(column, use="left out", why=f"one column of images is learned from, {first}")
        decided.append(column)
    return decided


def _task(targets: Sequence[Found], table: Table, ask: Ask) -> Task:
    if len(targets) > 1:
        return flags.task_of([target.name for target in targets], table)
    target, cells = targets[0], table.columns[targets[0].name]
    separator = tasks.separator_of(cells)
    if separator and ask(f"{target.name} holds several names with {separator!r} between them: predict each?", True):
        return tasks.separated(target.name, cells, separator)
    task = tasks.task_of(target, cells)
    spellings = [] if task.several else tasks.spellings(task)
    listed = "; ".join(" = ".join(names) for names in spellings[:SHOWN])
    if spellings and ask(f"These classes of {target.name} differ only in case: {listed}. Are they the same?", True):
        return tasks.without_case(task)
    return task


def _reading(found: Sequence[Found]) -> dict[str, Any]:
    """The settings of `data` that columns ask for."""
    tokens = list(dict.fromkeys(token for column in found for token in column.na_values if token.strip()))
    thousands = next((column.thousands for column in found if column.thousands), None)
    decimal = next((column.decimal for column in found if column.decimal), None)
    types = {column.name: column.type for column in found if column.type}
    settings = {"na_values": tokens, "thousands": thousands, "decimal": decimal, "columns": types}
    return {name: value for name, value in settings.items() if value}


def _decided(columns: Sequence[Found], table: Table, task: Task, ask: Ask) -> tuple[list[Found], list[str]]:
    """What becomes of the columns, and what the user should know."""
    has_label = splits.labeled(table.columns[task.label], task)
    labels = splits.labels_of(table.columns[task.label][has_label], task)
    decided, notes = [], _notes_on_label(task)
    for column in columns:
        cells = table.columns[column.name][has_label]
        if column.use not in ("left out", "image") and tasks.tells_label(cells, labels, not task.classes):
            if ask(f"{column.name} alone tells {task.label}: leave it out?", True):
                column = replace(
                    column, use="left out", why=f"it alone tells {task.label}: a copy, or known only later?"
                )
            notes.append(f"{column.name} alone tells {task.label}: is it known when the model is asked?")
        decided.append(column)
    used = [column.name for column in decided if column.use != "left out"]
    if not used:
        raise DataError(
            f"nothing is left to learn {task.label} from: "
            + ("; ".join(f"{c.name}: {c.why}" for c in decided) or "the data have no other column")
            + ".",
            "Add columns to the data.",
        )
    if not table.is_whole:
        notes.append(f"only the first {MAX_ROWS:,} rows were looked at")
    return decided, notes


def _notes_on_label(task: Task) -> list[str]:
    notes = []
    if task.missing:
        notes.append(f"{task.missing:,} rows have no {task.label}: left out (data.on_missing_label)")
    if task.ignore_case:
        notes.append(f"classes of {task.label} that differ only in case are one (ignore_case in features.py)")
    if task.rare:
        notes.append(f"few rows are {shown(task.rare)}: weighed more in training (trainer.params.class_weights)")
    few = [name for name, rows in zip(task.classes, task.counts, strict=True) if rows < tasks.FEW_ROWS]
    if few:
        notes.append(f"too few rows to learn or judge {shown(few)}: fewer than {tasks.FEW_ROWS}")
    return notes


def shown(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _planned(
    name: str,
    command: str,
    data: dict[str, Any],
    columns: Sequence[Found],
    table: Table,
    task: Task,
    notes: Sequence[str],
) -> Plan:
    has_label = splits.labeled(table.columns[task.label], task)
    inside = table.in_training & has_label
    train_rows, eval_rows = int(inside.sum()), int((~table.in_training & has_label).sum())
    if train_rows < FEWEST_ROWS or not eval_rows:
        raise DataError(
            f"{data['path']} has {train_rows} labeled rows to learn from and {eval_rows} to be judged on, expected at "
            f"least {FEWEST_ROWS} and 1.",
            "Give more rows.",
        )
    used = [column for column in columns if column.use != "left out"]
    if twice := tasks.rows_in_both_splits(table, [*(column.name for column in used), task.label]):
        notes = [
            *notes,
            f"{twice:,} rows to be judged on also stand among those to learn from: remove what is double",
        ]
    training = {column: cells[inside] for column, cells in table.columns.items()}
    by_time = data.get("split_by_time", {}).get("column")
    moments = moments_of(training[by_time]) if by_time else None
    measured = baseline.measure(used, training, task, moments)
    kinds = {column: _kind(cells) for column, cells in table.columns.items()}
    if task.flags:
        kinds |= dict.fromkeys(task.columns, "INT")
    return Plan(name, command, data, columns, kinds, task, train_rows, eval_rows, measured, notes)


def _kind(cells: Cells) -> str:
    """The schema's type of a column."""
    values = [value for cell in cells if cell is not None for value in (cell if isinstance(cell, list) else [cell])]
    if not values or any(isinstance(value, str) for value in values):
        return "BYTES"
    if isinstance(values[0], ImageCell):
        return "BYTES"
    return "FLOAT" if any(isinstance(value, float) for value in values) else "INT"
