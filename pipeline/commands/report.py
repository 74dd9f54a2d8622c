"""`millrace report`: writes the report of a run anew."""

from __future__ import annotations

from pathlib import Path

import click

from components.errors import MillraceError
from pipeline import environment as environments
from pipeline import outcome, reports
from pipeline.commands import found
from pipeline.commands.line import ENVIRONMENT_OPTION, reports_errors


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=found.complete_runs)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it instead.")
@ENVIRONMENT_OPTION
@reports_errors
def report(run_id: str | None, output: Path | None, environment_name: str) -> None:
    """Write the report of RUN, or of the latest run, anew: one HTML file."""
    store = found.opened(environment_name)
    run = found.run_of(store, run_id)
    environment = environments.load(environment_name)
    path = output or reports.path_of(environment, run.id)
    around = reports.surroundings(store, run, environment, environment_name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        reports.write(store, run, around, path)
    except OSError as error:
        raise MillraceError(
            f"the report cannot be written to {path}: {error}", "Choose a place with --output."
        ) from error
    click.echo(outcome.shown(path))
