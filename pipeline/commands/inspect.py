"""`millrace inspect`: the metadata store as live pages in a browser."""

from __future__ import annotations

import functools
import webbrowser
from contextlib import ExitStack

import click

from components.errors import MillraceError
from metadata.dashboard.site import Site, TensorBoard, UnreadableError
from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.report.source import Surroundings
from pipeline import environment as environments
from pipeline import lock, progress, reports, stores, why
from pipeline.commands.line import (
    DEFAULT_RECIPE,
    ENVIRONMENT_OPTION,
    environment_words,
    program,
    reports_errors,
    shell_line,
)
from pipeline.environment import Environment

PORT = 8090
HOST = "127.0.0.1"


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one.")
@click.option("--host", default=HOST, show_default=True, help="Another one lets others in, without a password.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@click.option("--tensorboard", is_flag=True, help="Start a TensorBoard beside it, for the curves of all runs.")
@ENVIRONMENT_OPTION
@reports_errors
def inspect(port: int, host: str, opens: bool, tensorboard: bool, environment_name: str) -> None:
    """Show runs, artifacts, models and comparisons in a browser; read-only, until Ctrl-C."""
    # Only this command needs a web server.
    from metadata.dashboard import server
    from metadata.dashboard.tensorboard_process import TensorBoardProcess

    environment = environments.load(environment_name)
    try:
        with ExitStack() as beside:
            board = beside.enter_context(TensorBoardProcess(environment.pipeline_root)) if tensorboard else None
            shown = site(environment, environment_name, board)
            server.serve(shown, host, port, functools.partial(_started, host, opens))
    except server.AddressError as error:
        raise MillraceError(str(error), "Choose another port with --port; 0 takes any free one.") from error


def _started(host: str, opens: bool, url: str) -> None:
    from metadata.dashboard.guard import is_loopback

    click.echo(f"Inspect    {url}  (Ctrl-C ends it)")
    if not is_loopback(host):
        click.secho(f"warning: whoever reaches {host} reads all of it: there is no password.", fg="yellow", err=True)
    if opens:
        webbrowser.open(url)


def site(environment: Environment, environment_name: str, tensorboard: TensorBoard | None = None) -> Site:
    """An environment as what the dashboard shows."""
    where = environment_words(environment_name)

    def opened() -> Queries | None:
        try:
            return stores.opened(environment)
        except MillraceError as error:
            raise UnreadableError(str(error)) from error

    def surroundings(store: Queries, run: RunRecord) -> Surroundings:
        return reports.surroundings(store, run, environment, environment_name)

    return Site(
        name=environment_name,
        opened=opened,
        store_file=environment.metadata_store.sqlite,
        log_root=environment.log_root,
        surroundings=surroundings,
        held=lambda pipeline: lock.is_held(pipeline, environment),
        why=why.explain,
        note=progress.training_note,
        command=lambda *words: shell_line(*(words or ("run", DEFAULT_RECIPE)), *where),
        program=program,
        tensorboard=tensorboard,
    )
