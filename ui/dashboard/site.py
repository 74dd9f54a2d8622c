"""What the dashboard shows: an environment, what is not in its metadata store, and a TensorBoard."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from metadata.queries import Queries
from metadata.records import RunRecord
from ui.report.source import Surroundings


class TensorBoard(Protocol):
    """A TensorBoard that runs beside the dashboard."""

    @property
    def folder(self) -> Path:
        """The folder whose runs it shows."""

    @property
    def url(self) -> str:
        """Its address; empty until it responds."""


@dataclass(frozen=True)
class Site:
    """The environment that the dashboard shows.

    Attributes:
        name: The environment's name.
        opened: Opens the metadata store; returns None while there is none yet. It raises `UnreadableError`, or what ML
            Metadata raises while another process creates or locks the store.
        store_file: The store's SQLite file; None if a server holds the store.
        log_root: Holds the logs, with a folder for each run.
        surroundings: What is not in the store about a run.
        held: Whether a run of a pipeline is going on, which its node runs alone do not show between two nodes.
        why: Explains a node run in one sentence, given the store, the pipeline, the node and the execution's id.
        note: A running node's progress, given the run's log folder and the node.
        command: A `millrace` command line from its words, to be pasted into a shell; without words, one for a first
            run.
        program: How to call a program of the virtual environment, by its name.
        tensorboard: The TensorBoard that runs beside the dashboard, or None.
    """

    name: str
    opened: Callable[[], Queries | None]
    store_file: Path | None
    log_root: Path
    surroundings: Callable[[Queries, RunRecord], Surroundings]
    held: Callable[[str], bool]
    why: Callable[[Queries, str, str, int], str]
    note: Callable[[Path, str], str]
    command: Callable[..., str]
    program: Callable[[str], str]
    tensorboard: TensorBoard | None = None


class UnreadableError(Exception):
    """The metadata store cannot be read now; the message says why and how to mend it."""


PR_SET_PDEATHSIG = 1
ADDRESS = re.compile(r"http://\S+/")


class TensorBoardProcess:
    """Starts TensorBoard on a free local port; it takes some seconds to respond.

    Args:
        folder: The folder whose runs it shows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "localhost"]
        self._process = subprocess.Popen(
            [*command, "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # If the dashboard is killed, nothing else would stop it.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()

    def __enter__(self) -> TensorBoardProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It only reads, so there is nothing to finish or to wait for.
        self._process.kill()
        self._process.wait()

    def _read(self, lines: IO[str]) -> None:
        # Read to the end, because a full pipe would block it.
        for line in lines:
            match = ADDRESS.search(line)
            if match and not self.url:
                self.url = match.group()
        self.url = ""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
