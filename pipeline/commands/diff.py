"""`millrace diff`: what changed from one run to another."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from components.errors import MillraceError
from metadata import differences
from metadata.differences import Change
from metadata.queries import Queries
from metadata.records import RunRecord
from pipeline.commands import found
from pipeline.commands.line import ENVIRONMENT_OPTION, reports_errors

LONGEST = 60


@click.command()
@click.argument("before", shell_complete=found.complete_runs)
@click.argument("after", shell_complete=found.complete_runs)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    is_flag=False,
    flag_value="",
    help="Write a page of both runs, with their data over each other, to FILE; else to diff-BEFORE-AFTER.html here.",
    metavar="[FILE]",
)
@found.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def diff(before: str, after: str, html: Path | None, as_json: bool, environment_name: str) -> None:
    """Show what changed from run BEFORE to run AFTER: settings, code, packages, data, schema, metrics."""
    store = found.opened(environment_name)
    runs = found.run_of(store, before), found.run_of(store, after)
    if html is not None:
        _write(store, *runs, html)
        return
    changed = differences.between(store, *runs)
    if as_json:
        found.print_json({"before": before, "after": after} | asdict(changed))
        return
    sections = {
        "Settings": changed.settings,
        "Code": changed.code,
        "Packages": changed.packages,
        "Data": changed.data,
        "Metrics": changed.metrics,
    }
    for title, changes in sections.items():
        if changes:
            _show(title, changes)
    if changed.schema:
        click.secho("Schema", bold=True)
        click.echo("\n".join(changed.schema))
    if not changed.schema and not any(sections.values()):
        click.echo(f"Nothing differs between {before} and {after}.")


def _write(store: Queries, before: RunRecord, after: RunRecord, path: Path) -> None:
    # Imported here, for the templates take a tenth of a second that the terminal's answer does not need.
    from metadata.report import comparison

    target = path if path.name else Path(f"diff-{before.id}-{after.id}.html")
    try:
        comparison.write(store, before, after, target)
    except OSError as error:
        raise MillraceError(
            f"the page cannot be written to {target}: {error.strerror}.", "Name a file in a folder that is there."
        ) from error
    click.echo(f"Written    {target}")


def _show(title: str, changes: list[Change]) -> None:
    made = found.table(title, ("", "Before", "After"), right=("Before", "After") if title == "Metrics" else ())
    for change in changes:
        made.add_row(Text(change.name), Text(_shown(change.before)), Text(_shown(change.after)))
    found.show(made)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
