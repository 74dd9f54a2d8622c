"""The live view of a run: a table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from metadata.records import KILLED, QUIET_NODES, STATE_WORDS, UNFINISHED
from metadata.store import NodeRun
from pipeline.run.folder import RunFolder

STYLES = {
    "waiting": "dim",
    "running": "bold yellow",
    "cached": "cyan",
    "done": "green",
    "failed": "bold red",
    "stopped": "red",
    "killed": "red",
}


PLAIN_SECONDS = 30.0
"""How often a long node's progress is told where there is no terminal."""

MINUTE = 60


class View:
    """Shows a run while it is going on.

    Args:
        console: Where to show it; if it is not a terminal, it gets a line whenever a node's state changes.
        title: What is being run.
        nodes: The nodes in the order of the data flow.
    """

    def __init__(self, console: Console, title: str, nodes: Sequence[str]) -> None:
        self._console = console
        self._title = title
        self._nodes = [node for node in nodes if node not in QUIET_NODES]
        self._shown: dict[str, str] = {}
        self._told: dict[str, float] = {}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._began = time.time()

    def __enter__(self) -> View:
        if self._live:
            self._live.start()
            self._live.update(self._table({}, None), refresh=True)
        else:
            self._console.print(Text(self._title))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def announce(self, text: str) -> None:
        """Prints a line above the view."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def update(self, node_runs: Mapping[str, NodeRun], folder: RunFolder) -> None:
        """Shows the current state of the node runs."""
        if self._live:
            self._live.update(self._table(node_runs, folder), refresh=True)
            return
        for node in self._nodes:
            record = node_runs.get(node)
            state = state_of(record)
            # A record may be missing although there was one before: the store was busy this time.
            if record and state != self._shown.get(node):
                self._shown[node] = state
                self._told[node] = time.monotonic()
                elapsed = _elapsed(record) if state != "running" else ""
                self._console.print(f"  {node:<17} {state:<8} {elapsed:>7}", highlight=False)
            elif state == "running" and time.monotonic() - self._told.get(node, 0) >= PLAIN_SECONDS:
                self._told[node] = time.monotonic()
                if note := progress_note(folder, node):
                    self._console.print(f"  {node:<17} {state:<8} {note:>7}", highlight=False, soft_wrap=True)

    def _table(self, node_runs: Mapping[str, NodeRun], folder: RunFolder | None) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("Node", "State", "Time", ""):
            table.add_column(heading, justify="right" if heading == "Time" else "left", header_style="dim")
        for node in self._nodes:
            record = node_runs.get(node)
            state = state_of(record)
            elapsed = _elapsed(record) if record and state != "cached" else ""
            note = progress_note(folder, node) if folder and state == "running" else ""
            table.add_row(node, Text(state, style=STYLES[state]), elapsed, note)
        starting = "" if node_runs else "  starting TensorFlow, TFX and Beam"
        footer = Text(f"{time.time() - self._began:.0f} s{starting}", style="dim")
        return Group(Text(self._title, style="bold"), table, footer)


def state_of(record: NodeRun | None) -> str:
    """The state of a node in words for users."""
    return STATE_WORDS[record.state] if record else "waiting"


def progress_note(folder: RunFolder, node: str) -> str:
    """How far a running node is: epoch and metrics of a training, rows of other nodes; empty if it does not say."""
    path = folder.progress_path(node)
    if not path.exists():
        return ""
    progress = json.loads(path.read_text(encoding="utf-8"))
    return _rows_note(progress) if "rows" in progress else _training_note(progress)


def _training_note(progress: Mapping[str, Any]) -> str:
    metrics = "  ".join(
        f"{name} {value:.4f}" for name, value in progress["metrics"].items() if not name.startswith("val_")
    )
    return f"epoch {progress['epoch']}/{progress['epochs']}  {metrics}  {progress['note']}"


def _rows_note(progress: Mapping[str, Any]) -> str:
    """Rows done, of all rows or in percent of the bytes; rows a second; time left."""
    rows, seconds, share = progress["rows"], progress["seconds"], progress["share"]
    if not rows or not seconds:
        return ""
    done = f"{rows:,} of {progress['total']:,} rows" if progress["total"] else f"{rows:,} rows"
    if not progress["total"] and share:
        done += f" ({share:.0%})"
    left = f"  {_duration(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
    return f"{done}  {rows / seconds:,.0f} rows/s{left}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < MINUTE else f"{seconds / MINUTE:.0f} min"


def _elapsed(record: NodeRun) -> str:
    if record.state == KILLED:
        return ""
    end = time.time() * 1000 if record.state in UNFINISHED else record.updated
    return f"{max(end - record.started, 0) / 1000:.1f} s"
