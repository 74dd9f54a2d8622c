"""`millrace new`: looks at a user's data and writes a recipe for them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from components.example_gen.files import SCHEME
from contracts.errors import SettingsError
from pipeline.commands import lookup
from pipeline.commands.options import reports_errors
from pipeline.plan import project
from pipeline.run.command_lines import shell_line

if TYPE_CHECKING:
    from pipeline.commands.new.plan import Plan

SHOWN_COLUMNS = 40


@click.command()
@click.argument("name")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="COLUMN",
    help="The column to be predicted, or several of yes and no; none for a folder of images, in which each class is a "
    "folder.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: take the defaults, as where there is no terminal.")
@reports_errors
def new(name: str, data: tuple[str, ...], labels: tuple[str, ...], yes: bool) -> None:
    """Write a recipe NAME for the rows in DATA, a file, a folder or a quoted glob: CSV, JSON lines, Parquet, TFRecord.

    Or for images: a folder with a folder for each class, or a table with a column of their paths.

    It looks at the data, writes recipes/NAME and schemas/NAME, which are yours from then on, and says what it found.
    """
    # Imported here, since they import pyarrow, which listing the commands can do without.
    from pipeline.commands.new import files
    from pipeline.commands.new.survey import survey

    root = _root()
    _check_name(name, root)
    ask = _default if yes or not sys.stdin.isatty() else _asked
    path = _only_path(data)
    command = shlex.join(["millrace", "new", name, path, *(word for label in labels for word in ("--label", label))])
    plan = survey(name, command, _relative(path, root), labels, root, ask)
    written = files.write(plan, root)
    _show(plan, written)


def _root() -> Path:
    """The project's folder; the current one where there is none yet."""
    try:
        return project.root()
    except SettingsError:
        folder = Path.cwd()
        if any((folder / package).exists() for package in project.PACKAGES):
            raise
        return folder


def _check_name(name: str, root: Path) -> None:
    if not name.isidentifier():
        raise SettingsError(
            f"received the name {name!r}, expected letters, digits and _, no digit first: it names a Python package.",
            f"For instance: {''.join(c if c.isalnum() else '_' for c in name).lstrip('0123456789_') or 'mine'}",
        )
    for folder in (root / "recipes" / name, root / "schemas" / name):
        if folder.exists():
            raise SettingsError(f"{folder} exists already.", "Take another name, or remove that folder first.")


def _only_path(data: tuple[str, ...]) -> str:
    if len(data) > 1:
        raise SettingsError(
            f"received {len(data)} paths, {data[0]}, {data[1]} …, expected one.",
            "Give the folder that they are in; or quote a pattern, so that the shell leaves it: 'data/*.csv'.",
        )
    return data[0]


def _relative(data: str, root: Path) -> str:
    """The path as recipe.yaml has it: relative to the project's folder if it is below it."""
    if data.startswith("package:") or SCHEME in data:
        return data
    path = Path(os.path.abspath(Path(data).expanduser()))
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _asked(question: str, default: bool) -> bool:
    return click.confirm(question, default=default)


def _default(_question: str, default: bool) -> bool:
    return default


def _show(plan: Plan, written: Sequence[Path]) -> None:
    width = len(plan.columns) + len(plan.task.columns)
    title = f"{plan.data['path']}: {plan.train_rows + plan.eval_rows:,} rows, {width} columns"
    table = lookup.make_table(title, ("Column", "Holds", "Missing", "Becomes", ""), right=("Missing",))
    for found in plan.columns[:SHOWN_COLUMNS]:
        missing = f"{found.missing:,}" if found.missing else ""
        style = "dim" if found.use == "left out" else ""
        table.add_row(*(Text(cell, style) for cell in (found.name, found.holds, missing, found.use, found.why)))
    lookup.print_wide(table)
    if len(plan.columns) > SHOWN_COLUMNS:
        click.echo(f"… and {len(plan.columns) - SHOWN_COLUMNS} more columns")
    click.echo(f"\nlabel     {plan.task.label}: {plan.task.name}{_described(plan)}")
    click.echo(f"splits    {plan.train_rows:,} rows to learn from, {plan.eval_rows:,} to be judged on")
    for measured in plan.measured:
        bar = plan.metrics[measured.name]
        bound = f"at least {bar['lower_bound']}" if "lower_bound" in bar else f"at most {bar['upper_bound']}"
        click.echo(f"bar       {measured.name} {bound}; {measured.by} has {measured.value:.4g} on training rows")
    for note in plan.notes:
        click.secho(f"note      {note}", fg="yellow")
    places = {"recipe.yaml": "how to read, bars, training", "features.py": "what becomes of each column"}
    click.echo()
    for path in written:
        click.echo(f"wrote     {path}{'   ' + places[path.name] if path.name in places else ''}")
    click.echo(f"\nRun it:   {shell_line('run', plan.name)}\nServe it: {shell_line('serve', plan.name)}")


def _described(plan: Plan) -> str:
    if not plan.task.classes:
        return f", mean {plan.task.mean:.4g}, standard deviation {plan.task.deviation:.4g}"
    from pipeline.commands.new import readme

    return f" ({readme.counts(plan.task)})"
