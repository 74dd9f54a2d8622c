"""What the inspecting commands share: opening the store, finding things by id, shell completion, and tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from contracts.errors import MillraceError
from contracts.near_names import did_you_mean
from metadata import files
from metadata.connection import BUSY
from metadata.queries import Queries
from metadata.records import MadeArtifact, RunRecord
from pipeline.run.command_lines import DEFAULT_ENVIRONMENT, DEFAULT_RECIPE, environment_words, shell_line
from pipeline.run.workplace import Workplace

WIDEST = 200
MILLISECONDS = 1000

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_store(workplace: Workplace) -> Queries:
    """Opens a workplace's metadata store.

    Raises:
        MillraceError: There is none yet, another process is creating it, or it cannot be reached.
    """
    try:
        store = workplace.open_store()
    except BUSY as error:
        description = workplace.described_store
        raise MillraceError(
            f"{description} cannot be read now: {error}", "A run may be making it; try again."
        ) from error
    if store is None:
        run_it = shell_line("run", DEFAULT_RECIPE, *environment_words(workplace.name))
        raise MillraceError("nothing has run yet: there is no metadata store.", f"Make one:  {run_it}")
    return store


def find_run(store: Queries, run_id: str | None) -> RunRecord:
    """The run with that id; the latest for None.

    Raises:
        MillraceError: There is none.
    """
    run = store.run(run_id) if run_id else next(iter(store.runs(limit=1)), None)
    if run is None:
        run_ids = store.all_run_ids()
        otherwise = f"The latest is {run_ids[0]}." if run_ids else "No run began yet."
        hint = did_you_mean(run_id or "", run_ids, otherwise, cutoff=0.5)
        raise MillraceError(f"no run {run_id!r}. {hint}" if run_id else hint)
    return run


def find_artifact(store: Queries, name: str) -> MadeArtifact:
    """The artifact with an id, or the newest that is stored in, or was pushed to, a folder.

    Raises:
        MillraceError: There is none.
    """
    location = name.rstrip("/") if files.is_uri(name) else str(Path(name).absolute())
    artifacts = store.artifacts_by_id([int(name)]) if name.isdecimal() else store.artifacts_at(location)
    if not artifacts:
        newest = store.artifacts(limit=1)
        hint = f"The newest is {newest[0].artifact.id}." if newest else "There are none."
        raise MillraceError(f"no artifact {name!r}: expected an id or an artifact's folder. {hint}")
    return artifacts[0]


def complete_runs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Run ids for the shell, newest first."""
    store = _for_completion(context)
    return [run_id for run_id in store.all_run_ids() if run_id.startswith(incomplete)] if store else []


def complete_artifacts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of the newest artifacts for the shell."""
    store = _for_completion(context)
    ids = [str(entry.artifact.id) for entry in store.artifacts(limit=WIDEST)] if store else []
    return [number for number in ids if number.startswith(incomplete)]


def complete_types(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Artifact types for the shell."""
    store = _for_completion(context)
    return [name for name in store.artifact_types() if name.startswith(incomplete)] if store else []


def _for_completion(context: click.Context) -> Queries | None:
    name = context.params.get("environment_name") or DEFAULT_ENVIRONMENT
    try:
        return Workplace.load(name).open_store()
    except (MillraceError, *BUSY):
        # A message would appear in the middle of the line being typed; the command itself prints it.
        return None


def local_time(milliseconds: int) -> str:
    """Milliseconds since 1970 as local time."""
    return datetime.fromtimestamp(milliseconds / MILLISECONDS).strftime("%Y-%m-%d %H:%M:%S")


def make_table(title: str, headings: Sequence[str], right: Sequence[str] = ()) -> Table:
    """An empty table in the style that all commands share."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, header_style="dim", justify="right" if heading in right else "left", no_wrap=True)
    return table


def print_wide(shown: object) -> None:
    """Prints a table or a tree; a terminal that is too narrow wraps the lines, so that no id is cut off."""
    console = Console()
    console.width = max(console.width, WIDEST)
    console.print(shown, highlight=False)


def print_json(value: Any) -> None:
    """Prints JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
