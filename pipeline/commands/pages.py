"""`millrace inspect` and `millrace report`: the metadata store as web pages, and a run as one file."""

from __future__ import annotations

import functools
import webbrowser
from contextlib import ExitStack
from pathlib import Path

import click

from contracts.errors import MillraceError
from metadata.queries import Queries
from metadata.records import RunRecord
from pipeline.commands import lookup
from pipeline.commands.options import ENVIRONMENT_OPTION, reports_errors
from pipeline.plan import why
from pipeline.run import lock, progress, reports
from pipeline.run.command_lines import DEFAULT_RECIPE, display_path, environment_words, program, shell_line
from pipeline.run.folder import RunFolder
from pipeline.run.workplace import Workplace
from ui.dashboard.site import Site, TensorBoard, UnreadableError
from ui.report.source import Surroundings

PORT = 8090
HOST = "127.0.0.1"


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one.")
@click.option("--host", default=HOST, show_default=True, help="Any other address lets others in, without a password.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@click.option("--tensorboard", is_flag=True, help="Also start a TensorBoard with the curves of all runs.")
@ENVIRONMENT_OPTION
@reports_errors
def inspect(port: int, host: str, opens: bool, tensorboard: bool, environment_name: str) -> None:
    """Show runs, artifacts, models and comparisons in a browser; read-only, until Ctrl-C."""
    # Imported here because only this command needs a web server.
    from ui.dashboard import app
    from ui.dashboard.site import TensorBoardProcess

    workplace = Workplace.load(environment_name)
    try:
        with ExitStack() as beside:
            root = workplace.environment.pipeline_root
            board = beside.enter_context(TensorBoardProcess(root)) if tensorboard else None
            app.serve(site(workplace, board), host, port, functools.partial(_started, host, opens))
    except app.AddressError as error:
        raise MillraceError(str(error), "Choose another port with --port; 0 takes any free one.") from error


def _started(host: str, opens: bool, url: str) -> None:
    from ui.dashboard.responses import is_loopback

    click.echo(f"Inspect    {url}  (Ctrl-C ends it)")
    if not is_loopback(host):
        click.secho(
            f"warning: anyone who can reach {host} can read all of it: there is no password.", fg="yellow", err=True
        )
    if opens:
        webbrowser.open(url)


def site(workplace: Workplace, tensorboard: TensorBoard | None = None) -> Site:
    """The site that the dashboard shows for a workplace."""
    environment, where = workplace.environment, environment_words(workplace.name)

    def opened() -> Queries | None:
        try:
            return workplace.open_store()
        except MillraceError as error:
            raise UnreadableError(str(error)) from error

    def surroundings(store: Queries, run: RunRecord) -> Surroundings:
        return reports.surroundings(store, run, workplace)

    return Site(
        name=workplace.name,
        opened=opened,
        store_file=environment.metadata_store.sqlite,
        log_root=environment.log_root,
        surroundings=surroundings,
        held=lambda pipeline: lock.is_held(pipeline, environment),
        why=why.explain,
        note=lambda folder, node: progress.progress_note(RunFolder(folder), node),
        command=lambda *words: shell_line(*(words or ("run", DEFAULT_RECIPE)), *where),
        program=program,
        tensorboard=tensorboard,
    )


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=lookup.complete_runs)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it instead.")
@ENVIRONMENT_OPTION
@reports_errors
def report(run_id: str | None, output: Path | None, environment_name: str) -> None:
    """Write the report of RUN, or of the latest run, again: one HTML file."""
    workplace = Workplace.load(environment_name)
    store = lookup.open_store(workplace)
    run = lookup.find_run(store, run_id)
    path = output or workplace.run_folder(run.id).report_path
    around = reports.surroundings(store, run, workplace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        reports.write(store, run, around, path)
    except OSError as error:
        raise MillraceError(
            f"the report cannot be written to {path}: {error}", "Choose a place with --output."
        ) from error
    click.echo(display_path(path))
