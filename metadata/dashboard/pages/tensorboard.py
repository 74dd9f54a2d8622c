"""A run's curves in TensorBoard: the command, and a link where `--tensorboard` started one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import quote

from metadata.dashboard import finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, NotFoundError, Page
from metadata.queries import Queries
from metadata.report.source import Source

LOGS = "tensorboard"
"""The folder of event files in the Trainer's output."""


def page(store: Queries, ask: Ask) -> Page:
    """The page of a run's TensorBoard."""
    run = finding.run_of(store, ask.match["run"])
    artifact = Source.of(store, run).artifact("Trainer", "model_run")
    if artifact is None:
        raise NotFoundError(f"The run {run.id} has trained no model.", [(run.id, URLS.run(run.id))])
    folder = artifact.path / LOGS
    command = shlex.join([ask.site.program("tensorboard"), "--logdir", str(folder), "--host", "localhost"])
    running = ask.site.tensorboard.url if ask.site.tensorboard else ""
    return Page(
        "tensorboard.html",
        f"TensorBoard of {run.id}",
        lambda: {
            "run": run,
            "folder": folder,
            "there": folder.is_dir(),
            "command": command,
            "link": _link(running, folder, ask) if running else "",
            "starting": ask.site.tensorboard is not None and not running,
        },
        {"run": run.id, "folder": str(folder), "command": command, "url": running or None},
        section="Runs",
        live=ask.site.tensorboard is not None and not running,
    )


def _link(running: str, folder: Path, ask: Ask) -> str:
    """TensorBoard with this run's curves alone; it names runs by their folders below its own."""
    assert ask.site.tensorboard is not None  # noqa: S101 - it is what is running
    try:
        name = folder.relative_to(ask.site.tensorboard.folder)
    except ValueError:
        return running
    return f"{running}?runFilter={quote('^' + re.escape(str(name)))}#timeseries"
